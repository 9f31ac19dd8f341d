import re

import pytest

from ballast.api.policy_metrics import Queries
from ballast.prometheus import SHUFFLE, Jobs, Preset, queries
from ballast.prometheus import Queries as Asked


@pytest.mark.parametrize("preset", list(Preset))
def test_every_query_of_a_preset_is_asked_over_the_window(preset: Preset) -> None:
    rendered = queries(preset, {}).rendered(120.0)
    assert {"nodeCpu", "nodeMemory", "nodeAge", "executorCpu", "executorTaskSeconds"} <= rendered.keys()
    assert not any("$" in text.replace("$1", "") for text in rendered.values())
    assert {"nodePressure", "executorThrottling"} <= rendered.keys()
    assert "[120s]" in rendered["nodeCpu"]


def test_a_users_query_takes_the_place_of_the_presets() -> None:
    rendered = queries(Preset.CADVISOR, {"nodeMemory": "my_memory"}).rendered(60.0)
    assert rendered["nodeMemory"] == "my_memory"
    assert "nodeAge" in rendered


@pytest.mark.parametrize("preset", list(Preset))
def test_a_policy_can_replace_every_query_of_a_preset(preset: Preset) -> None:
    mine = Queries.model_validate({name: f"my_{name}" for name in Queries.model_fields}).to_dict()
    assert queries(preset, mine).rendered(60.0) == mine
    assert {"stateBytes", "batchSeconds", "nodeAge", "nodePressure"} <= mine.keys()


def test_a_users_node_cpu_is_not_judged_by_the_age_of_the_presets_series() -> None:
    assert "nodeAge" not in queries(Preset.CADVISOR, {"nodeCpu": "my_cpu"}).rendered(60.0)


def test_series_are_chosen_by_their_job_where_the_preset_knows_it_and_by_the_pod_alone_elsewhere() -> None:
    cpu = {preset: queries(preset, {}).rendered(60.0)["executorCpu"] for preset in Preset}
    assert "job=" not in cpu[Preset.CADVISOR]
    chosen = 'total{job=~"kubelet|integrations/kubernetes/cadvisor",metrics_path=~"|/metrics/cadvisor",'
    assert chosen in cpu[Preset.KUBE_PROMETHEUS_STACK]


def test_jobs_of_the_users_own_take_the_place_of_those_that_the_preset_knows() -> None:
    jobs = Jobs(node_exporter=("nodes.prod",), cadvisor=("containers", "more"))
    stack, cadvisor = (queries(preset, {}, jobs=jobs).rendered(60.0) for preset in Preset)
    assert '{job=~"nodes[.]prod",' in stack["nodeCpu"]
    assert '{job=~"containers|more",metrics_path=~"|/metrics/cadvisor",' in stack["executorCpu"]
    assert '{job=~"containers|more",id="/",' in cadvisor["nodeCpu"]


SELECTOR = re.compile(r"\{([^{}]*(?:\{[0-9,]+\}[^{}]*)*)\}")


def selectors(text: str) -> list[str]:
    """What stands in the braces of a query; those of a regular expression are numbers."""
    return [found for found in SELECTOR.findall(text) if "=" in found]


@pytest.mark.parametrize("preset", list(Preset))
def test_every_selector_of_every_query_has_the_matchers(preset: Preset) -> None:
    chosen = queries(preset, {}, matchers={"cluster": 'the "one"', "region": "eu"}).with_more(SHUFFLE)
    texts = [*chosen.rendered(60.0).values(), *(text for each in chosen.shortened(60.0).values() for text in each)]
    texts += [chosen.sources_of(signal, {"node": "n"}, most=5) for signal in chosen.sources]
    found = [selector for text in texts for selector in selectors(text)]
    assert len(found) > 50
    assert all('cluster="the \\"one\\"",region="eu",' in selector for selector in found)


@pytest.mark.parametrize("preset", list(Preset))
def test_sources_are_counted_of_the_presets_queries_alone(preset: Preset) -> None:
    rendered = queries(preset, {"nodeCpu": "mine"}).rendered(60.0)
    assert '"signal", "nodeCpu"' not in rendered["nodeSources"]
    assert '"signal", "nodeMemory"' in rendered["nodeSources"]
    assert '"signal", "executorCpu"' in rendered["executorSources"]


@pytest.mark.parametrize("preset", list(Preset))
def test_every_query_of_a_preset_has_a_bound_in_each_namespace_and_can_be_asked_for_with_fewer_series(
    preset: Preset,
) -> None:
    chosen = queries(preset, {"stateBytes": "my_state"})
    rendered, shortened = chosen.rendered(60.0), chosen.shortened(60.0)
    assert shortened.keys() == rendered.keys() - {"stateBytes"}
    assert all("topk by (namespace) (" in rendered[name] for name in shortened)
    for name, counts in (("executorSlots", (5000, 500, 50)), ("nodeCpu", (20000, 5000, 500))):
        texts = [rendered[name].replace(f"({counts[0]}, ", f"({most}, ") for most in counts]
        assert [rendered[name], *shortened[name]] == texts


def test_of_each_namespace_no_more_series_are_asked_for_than_its_pods_may_export() -> None:
    asked = Asked.of_each_namespace({"cores": "sum by (namespace) (up)"})
    texts = [asked.rendered(60.0)["cores"], *asked.shortened(60.0)["cores"]]
    assert texts == [f"topk by (namespace) ({most}, sum by (namespace) (up))" for most in (5000, 500, 50)]
