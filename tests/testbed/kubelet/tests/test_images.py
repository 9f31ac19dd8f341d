from collections.abc import Mapping

import pytest

from tests.testbed.kubelet.config import CommandImage, HostImage, Image, SparkImage
from tests.testbed.kubelet.images import Machine, content, find

IMAGES: Mapping[str, Image] = {
    "registry/spark*": SparkImage(kind="spark"),
    "registry/spark-tools:1": HostImage(kind="host"),
    "registry/*": CommandImage(kind="command", command=["run"], env={"A": "1"}, user=7),
}
MACHINE = Machine(
    python="/venv/bin/python",
    python_path=("/app",),
    java_home="/java",
    spark_home="/pip/pyspark",
    traversable=(),
    elsewhere=(),
)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("registry/spark:4", "spark"),
        ("registry/spark-tools:1", "host"),
        ("registry/other:2", "command"),
        ("noise", "noise"),
        ("docker.io/library/noise:latest", "noise"),
    ],
)
def test_the_exact_name_wins_then_the_longest_prefix_then_what_is_built_in(name: str, kind: str) -> None:
    found = find(name, IMAGES)
    assert found is not None
    assert found.kind == kind


def test_an_unknown_image_is_not_found() -> None:
    assert find("elsewhere/thing", IMAGES) is None


def test_pods_find_the_interpreter_first_on_their_path() -> None:
    environment = content(HostImage(kind="host"), MACHINE).environment
    assert environment["PATH"].startswith("/venv/bin:")
    assert environment["PYTHONPATH"] == "/app"


def test_a_command_image_has_an_entrypoint_a_user_and_an_environment() -> None:
    made = content(IMAGES["registry/*"], MACHINE)
    assert (made.entrypoint, made.user, made.environment["A"]) == (("run",), 7, "1")


def test_sparks_image_has_its_home_and_its_scripts() -> None:
    made = content(SparkImage(kind="spark"), MACHINE)
    assert made.entrypoint == ("/opt/entrypoint.sh",)
    assert [(layer.path, layer.lower) for layer in made.layers] == [("/opt/spark", "/pip/pyspark")]
    scripts = {file.path: file for file in made.files if file.mode == 0o755}
    assert scripts.keys() == {"/opt/entrypoint.sh", "/opt/decom.sh"}
    assert all(file.content.startswith("#!/venv/bin/python ") for file in scripts.values())


def test_sparks_image_says_what_the_machine_lacks() -> None:
    with pytest.raises(FileNotFoundError, match="Java"):
        content(SparkImage(kind="spark"), Machine("/p", (), None, "/pip/pyspark", (), ()))
