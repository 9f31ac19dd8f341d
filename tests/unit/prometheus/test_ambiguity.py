"""What is said of values that come from several sources."""

import pytest

from ballast.prometheus import Ambiguity

BOTH = Ambiguity(nodes=("a", "b"), executors=(), signal="nodeCpu", groups=({"instance": "10.0.0.1:9100"},))


PROD = '(such as matchers: {cluster: "prod"})'


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        (
            [{"cluster": "prod", "pod": "x"}, {"cluster": "test", "pod": "y"}],
            f'cluster: "prod", "test"; pod: "x", "y" {PROD}',
        ),
        (
            [{"replica": "p-0"}, {"replica": "p-1"}],
            'replica: "p-0", "p-1" (such as matchers: {replica: "p-0"})',
        ),
        ([{"cluster": ""}, {"cluster": "prod"}], f'cluster: "", "prod" {PROD}'),
        (
            [{"job": "kubelet", "instance": "x"}, {"job": "cadvisor", "instance": "x"}],
            'job: "cadvisor", "kubelet" (name one job in metrics.advanced.jobs)',
        ),
        (
            [{"instance": "10.0.0.1:1"}, {"instance": "10.0.0.1:2"}],
            'instance: "10.0.0.1:1", "10.0.0.1:2" (scrape them once, or add a label that a matcher can choose)',
        ),
    ],
)
def test_the_labels_that_differ_are_named_with_a_remedy(sources: list[dict[str, str]], words: str) -> None:
    assert BOTH.told_apart(sources) == f"sources of nodeCpu of a differ by {words}"


@pytest.mark.parametrize("sources", [[], [{"cluster": "prod"}]])
def test_where_no_label_is_known_to_differ_nothing_is_said_of_labels(sources: list[dict[str, str]]) -> None:
    assert BOTH.told_apart(sources) == ""


def test_names_of_others_reach_a_message_only_as_text_that_can_be_shown() -> None:
    message = BOTH.told_apart([{"cluster": "\x1b[2J" + "n" * 400}, {"cluster": "x"}])
    assert message.isprintable()
    assert len(message) < 700
