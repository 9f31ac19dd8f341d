from typing import Any

from tests.testbed.kubelet.hosts import Directory, PodEntry, file_text
from tests.testbed.kubelet.tests.builders import pod

Json = dict[str, Any]
DB = {"app": "db"}


def service(name: str = "db", *, ip: str = "None", **spec: Any) -> Json:
    metadata = {"name": name, "namespace": "shop", "uid": f"s-{name}"}
    return {"metadata": metadata, "spec": {"clusterIP": ip, "selector": DB, **spec}}


def entry(address: str, *, ready: bool = True, **fields: Any) -> PodEntry:
    return PodEntry("shop", {"app": "db", "more": "x"}, address, ready, **fields)


def lines(of: Json, *pods: PodEntry, namespace: str = "shop") -> list[str]:
    directory = Directory(lambda: pods, lambda: None)
    directory.changed(of)
    return directory.lines(namespace)


NAMES = "db.shop.svc.cluster.local db.shop.svc db.shop"


def test_a_headless_services_names_lead_to_all_its_ready_pods() -> None:
    found = lines(service(), entry("127.1.2.2"), entry("127.1.1.2"), entry("127.1.3.2", ready=False))
    assert found == [f"127.1.1.2\t{NAMES} db", f"127.1.2.2\t{NAMES} db"]


def test_pods_of_other_labels_and_namespaces_are_not_the_services() -> None:
    others = [PodEntry("shop", {"app": "web"}, "127.1.1.2", True), PodEntry("other", DB, "127.1.1.3", True)]
    assert lines(service(), *others) == []


def test_a_service_without_a_selector_selects_nothing() -> None:
    assert lines(service(selector={}), entry("127.1.1.2")) == []


def test_pods_with_host_names_in_the_services_subdomain_have_names_of_their_own() -> None:
    (line,) = lines(service(), entry("127.1.1.2", hostname="db-0", subdomain="db"))
    assert line.startswith("127.1.1.2\tdb-0.db.shop.svc.cluster.local db-0.db.shop.svc db-0.db.shop ")


def test_a_service_that_wants_it_shows_pods_that_are_not_ready() -> None:
    assert lines(service(publishNotReadyAddresses=True), entry("127.1.1.2", ready=False))


def test_a_cluster_address_stands_for_one_pod() -> None:
    assert len(lines(service(ip="10.0.0.7"), entry("127.1.1.2"), entry("127.1.2.2"))) == 1


def test_the_bare_name_works_only_in_the_services_own_namespace() -> None:
    assert lines(service(), entry("127.1.1.2"), namespace="other") == [f"127.1.1.2\t{NAMES}"]


def test_the_api_servers_names_lead_to_its_cluster_address() -> None:
    metadata = {"name": "kubernetes", "namespace": "default", "uid": "k"}
    api: Json = {"metadata": metadata, "spec": {"clusterIP": "10.96.0.1", "ports": [{"port": 443}]}}
    directory = Directory(list, lambda: None)
    directory.changed(api)
    assert directory.api_server() == ("10.96.0.1", 443)
    assert directory.lines("shop") == [
        "10.96.0.1\tkubernetes.default.svc.cluster.local kubernetes.default.svc kubernetes.default"
    ]


def test_a_removed_service_has_no_names() -> None:
    directory = Directory(lambda: [entry("127.1.1.2")], lambda: None)
    directory.changed(service())
    directory.removed(service())
    assert directory.lines("shop") == []


def test_a_pods_own_name_and_aliases_are_in_its_file() -> None:
    aliased = pod(hostAliases=[{"ip": "127.0.0.9", "hostnames": ["a", "b"]}])
    text = file_text(aliased, "127.1.1.2", [f"127.1.2.2\t{NAMES}"])
    assert text.splitlines() == ["127.0.0.1\tlocalhost", "127.1.1.2\tweb-0", "127.0.0.9\ta b", f"127.1.2.2\t{NAMES}"]
