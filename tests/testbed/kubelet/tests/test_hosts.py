from typing import Any

from tests.testbed.kubelet.hosts import SERVICE_LABEL, Directory, file_text
from tests.testbed.kubelet.tests.builders import pod

Json = dict[str, Any]


def service(name: str = "db", *, ip: str = "None", **spec: Any) -> Json:
    return {"metadata": {"name": name, "namespace": "shop", "uid": f"s-{name}"}, "spec": {"clusterIP": ip, **spec}}


def endpoints(*entries: Json, of: str = "db") -> Json:
    metadata = {"name": f"{of}-1", "namespace": "shop", "uid": f"e-{of}", "labels": {SERVICE_LABEL: of}}
    return {"metadata": metadata, "addressType": "IPv4", "endpoints": list(entries)}


def endpoint(address: str, *, ready: bool = True, **fields: Any) -> Json:
    return {"addresses": [address], "conditions": {"ready": ready}, **fields}


def lines(*items: Json, namespace: str = "shop") -> list[str]:
    directory = Directory(lambda: None)
    for item in items:
        directory.changed(item)
    return directory.lines(namespace)


NAMES = "db.shop.svc.cluster.local db.shop.svc db.shop"


def test_a_headless_services_names_lead_to_all_its_ready_endpoints() -> None:
    found = lines(
        service(), endpoints(endpoint("127.1.1.2"), endpoint("127.1.2.2"), endpoint("127.1.3.2", ready=False))
    )
    assert found == [f"127.1.1.2\t{NAMES} db", f"127.1.2.2\t{NAMES} db"]


def test_endpoints_with_host_names_have_names_of_their_own() -> None:
    (line,) = lines(service(), endpoints(endpoint("127.1.1.2", hostname="db-0")))
    assert line.startswith("127.1.1.2\tdb-0.db.shop.svc.cluster.local db-0.db.shop.svc db-0.db.shop ")


def test_a_service_that_wants_it_shows_endpoints_that_are_not_ready() -> None:
    assert lines(service(publishNotReadyAddresses=True), endpoints(endpoint("127.1.1.2", ready=False)))


def test_a_cluster_address_stands_for_one_endpoint() -> None:
    assert len(lines(service(ip="10.0.0.7"), endpoints(endpoint("127.1.1.2"), endpoint("127.1.2.2")))) == 1


def test_the_bare_name_works_only_in_the_services_own_namespace() -> None:
    assert lines(service(), endpoints(endpoint("127.1.1.2")), namespace="other") == [f"127.1.1.2\t{NAMES}"]


def test_a_removed_service_has_no_names() -> None:
    directory = Directory(lambda: None)
    directory.changed(service())
    directory.changed(endpoints(endpoint("127.1.1.2")))
    directory.removed(service())
    assert directory.lines("shop") == []


def test_a_pods_own_name_and_aliases_are_in_its_file() -> None:
    text = file_text(
        pod(hostAliases=[{"ip": "127.0.0.9", "hostnames": ["a", "b"]}]), "127.1.1.2", [f"127.1.2.2\t{NAMES}"]
    )
    assert text.splitlines() == ["127.0.0.1\tlocalhost", "127.1.1.2\tweb-0", "127.0.0.9\ta b", f"127.1.2.2\t{NAMES}"]
