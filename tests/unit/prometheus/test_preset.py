import pytest

from ballast.api.policy_metrics import Queries
from ballast.prometheus import Preset, queries


@pytest.mark.parametrize("preset", list(Preset))
def test_every_query_of_a_preset_is_asked_over_the_window(preset: Preset) -> None:
    rendered = queries(preset, {}).rendered(120.0)
    assert {"nodeCpu", "nodeMemory", "nodeAge", "executorCpu", "executorTaskSeconds"} <= rendered.keys()
    assert not any("$" in text.replace("spark-$1", "") for text in rendered.values())
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
    assert 'total{pod=~".+-exec-[0-9]+",' in cpu[Preset.CADVISOR]
    assert 'total{job="kubelet",metrics_path="/metrics/cadvisor",pod=~' in cpu[Preset.KUBE_PROMETHEUS_STACK]


def test_what_tenants_export_can_be_asked_for_with_fewer_series() -> None:
    chosen = queries(Preset.CADVISOR, {"stateBytes": "my_state"})
    rendered, shortened = chosen.rendered(60.0), chosen.shortened(60.0)
    assert shortened.keys() == {name for name, text in rendered.items() if "topk by (namespace) (5000, " in text}
    assert "stateBytes" not in shortened
    assert shortened["executorSlots"] == [
        rendered["executorSlots"].replace("(5000, ", f"({most}, ") for most in (500, 50)
    ]
