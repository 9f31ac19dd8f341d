"""Which series of a Prometheus are this cluster's, by options."""

import pytest

from ballast.cli.matchers import matchers
from ballast.errors import InvalidField
from tests.unit.cli.program import run


def test_each_label_has_its_value() -> None:
    assert matchers(["cluster=prod", "tenant=a=b", "replica="]) == {"cluster": "prod", "tenant": "a=b", "replica": ""}
    assert matchers(None) == {}


@pytest.mark.parametrize("text", ["cluster", "cluster-name=prod", "__name__=up", "=prod", "a b=c"])
def test_what_is_no_label_of_prometheus_is_refused(text: str) -> None:
    with pytest.raises(InvalidField, match="write LABEL=VALUE"):
        matchers([text])


def test_a_label_is_given_once() -> None:
    with pytest.raises(InvalidField, match="given twice"):
        matchers(["cluster=a", "cluster=b"])


def test_a_report_without_a_server_has_no_series_to_choose() -> None:
    found = run("report", "--matcher", "cluster=prod")
    assert found.code == 2
    assert "--prometheus" in found.err
