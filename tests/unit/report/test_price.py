"""What bytes between zones cost."""

from __future__ import annotations

import re

import pytest

from ballast.report.price import GIB, LIST_PRICES, Cloud, cloud_of, own_price

TERABYTE_AN_HOUR = 1024 * GIB / 3600.0


def test_each_direction_is_paid_for() -> None:
    assert own_price(0.01).per_month(TERABYTE_AN_HOUR) == pytest.approx(1024 * 730 * 0.02)


def test_where_only_the_sender_pays_it_is_half_of_what_both_pay() -> None:
    aws, gcp = (LIST_PRICES[each].per_month(TERABYTE_AN_HOUR) for each in (Cloud.AWS, Cloud.GCP))
    assert gcp == pytest.approx(aws / 2)


def test_a_cloud_that_charges_nothing_between_zones_costs_nothing() -> None:
    assert LIST_PRICES[Cloud.AZURE].per_month(TERABYTE_AN_HOUR) == 0.0


def test_each_direction_has_its_own_cost() -> None:
    gcp = LIST_PRICES[Cloud.GCP]
    assert gcp.out_per_month(TERABYTE_AN_HOUR) == pytest.approx(1024 * 730 * 0.01)
    assert gcp.in_per_month(TERABYTE_AN_HOUR) == 0.0


@pytest.mark.parametrize(
    ("cloud", "page"),
    [(Cloud.AWS, "aws.amazon.com/"), (Cloud.GCP, "cloud.google.com/"), (Cloud.AZURE, "learn.microsoft.com/")],
)
def test_every_list_price_names_the_clouds_own_page_and_when_it_was_checked(cloud: Cloud, page: str) -> None:
    assert page in LIST_PRICES[cloud].source
    assert re.search(r"checked 20\d\d-\d\d-\d\d", LIST_PRICES[cloud].source)


@pytest.mark.parametrize(
    ("label", "cloud"),
    [
        ("eks.amazonaws.com/nodegroup", Cloud.AWS),
        ("cloud.google.com/gke-nodepool", Cloud.GCP),
        ("kubernetes.azure.com/agentpool", Cloud.AZURE),
    ],
)
def test_the_nodes_labels_name_the_cloud(label: str, cloud: Cloud) -> None:
    assert cloud_of([{label: "a"}, {"kubernetes.io/hostname": "n"}]) is cloud


def test_a_cloud_is_not_guessed_from_nothing_or_from_two() -> None:
    assert cloud_of([{"kubernetes.io/hostname": "n"}]) is None
    assert cloud_of([{"cloud.google.com/x": ""}, {"eks.amazonaws.com/x": ""}]) is None
