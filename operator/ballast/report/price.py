"""What a byte between two zones costs: list prices of three clouds, or the user's own price.

Prices change and contracts differ: every report names the price that it used, its source and when it was checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

GIB = float(1 << 30)
MONTH_SECONDS = 730.0 * 3600.0
"""A month as the clouds bill it."""


class Cloud(StrEnum):
    AWS = "aws"
    GCP = "gcp"
    AZURE = "azure"


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per GiB between two zones of a region: for the sender's end, and for the receiver's."""

    out_per_gib: float
    in_per_gib: float
    source: str

    def per_month(self, bytes_per_second: float) -> float:
        """Of a steady rate between zones; each byte leaves one zone and enters another."""
        return self.out_per_month(bytes_per_second) + self.in_per_month(bytes_per_second)

    def out_per_month(self, bytes_per_second: float) -> float:
        """What the sending ends pay."""
        return bytes_per_second * MONTH_SECONDS / GIB * self.out_per_gib

    def in_per_month(self, bytes_per_second: float) -> float:
        """What the receiving ends pay."""
        return bytes_per_second * MONTH_SECONDS / GIB * self.in_per_gib


CHECKED = "2026-11-23"
"""When each price below was last compared with a public copy or quotation of the page that it names."""

LIST_PRICES: Mapping[Cloud, Price] = {
    Cloud.AWS: Price(
        0.01,
        0.01,
        "AWS list price: 0.01 USD in each direction "
        f"(aws.amazon.com/ec2/pricing/on-demand, data transfer within a region, checked {CHECKED})",
    ),
    Cloud.GCP: Price(
        0.01,
        0.0,
        "Google Cloud list price: 0.01 USD out of a zone, nothing in "
        f"(cloud.google.com/vpc/network-pricing, between zones of a region, checked {CHECKED})",
    ),
    Cloud.AZURE: Price(
        0.0,
        0.0,
        "Azure list price: no charge between zones of a region "
        f"(learn.microsoft.com/azure/reliability/availability-zones-overview, checked {CHECKED})",
    ),
}

_LABELS = {
    Cloud.AWS: ("eks.amazonaws.com/", "k8s.amazonaws.com/", "topology.k8s.aws/", "karpenter.k8s.aws/"),
    Cloud.GCP: ("cloud.google.com/",),
    Cloud.AZURE: ("kubernetes.azure.com/",),
}
"""Prefixes of node labels that only this cloud's nodes carry."""


def own_price(per_gib: float) -> Price:
    """`--price-per-gib`: charged in each direction."""
    return Price(per_gib, per_gib, f"--price-per-gib: {per_gib:g} USD in each direction")


def cloud_of(labels: Iterable[Mapping[str, str]]) -> Cloud | None:
    """The cloud that the nodes' labels name; None if they name none, or several."""
    found = {
        cloud for own in labels for name in own for cloud, prefixes in _LABELS.items() if name.startswith(prefixes)
    }
    return found.pop() if len(found) == 1 else None
