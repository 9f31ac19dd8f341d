"""The report about running applications, as text and as a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from ballast.cli.output import Format, heading, percent, points, rounded, table
from ballast.cli.report.pool import BASES, Naming, instant
from ballast.model import Node
from ballast.report.exchange import Reads, Volume
from ballast.report.findings import ApplicationReport, PoolReport, Traffic, Verdict

_MOST_ROWS = 20
_VOLUMES = {
    Volume.MEASURED: "bytes measured by Spark, split over executors estimated (all-to-all)",
    Volume.DECLARED: "bytes declared in a SparkTopology, split estimated (all-to-all)",
    Volume.UPPER_BOUND: "upper bound: the pods' whole network traffic, split estimated (all-to-all)",
    Volume.UNKNOWN: "bytes unknown, split estimated (all-to-all)",
}


def headline(found: PoolReport) -> str:
    """What placing would save, in one sentence. Without bytes or a price, what it would change."""
    applications = found.applications
    if not applications:
        return "No Spark executors run on these nodes."
    gaining = [each for each in applications if each.verdict is Verdict.GAIN]
    also = _others(found)
    if not gaining:
        nothing = found.verdicts.get(Verdict.NOTHING_TO_GAIN, 0)
        return f"{'Nothing to gain by placing' if nothing else 'No application can be judged'}: {_reasons(found)}."
    if found.priced and found.dollars_per_month > 0.0:
        if found.saved_dollars_per_month <= 0.0:
            return f"Placing would save no money between zones: the pool has no room that is nearer.{also}"
        most = "at most " if any(each.volume is Volume.UPPER_BOUND for each in found.priced) else ""
        unpriced = sum(each.dollars_unknown for each in applications)
        without = f", {_counted(unpriced)} without known bytes not counted" if unpriced else ""
        return (
            f"Placing would save {most}{dollars(found.saved_dollars_per_month)} of the "
            f"{dollars(found.dollars_per_month)} a month that shuffle between zones costs{without}.{also}"
        )
    return f"Placing would bring the executors of {_counted(len(gaining))} nearer; {_no_money(found)}.{also}"


def _counted(applications: int) -> str:
    return "1 application" if applications == 1 else f"{applications} applications"


def _others(found: PoolReport) -> str:
    """Applications that are no part of the gain."""
    total, still, unknown = (
        len(found.applications),
        found.verdicts.get(Verdict.NOTHING_TO_GAIN, 0),
        found.verdicts.get(Verdict.UNKNOWN, 0),
    )
    gains = f" {still} of {total} applications {'has' if still == 1 else 'have'} nothing to gain." if still else ""
    return gains + (f" {unknown} of {total} can't be judged." if unknown else "")


def _no_money(found: PoolReport) -> str:
    if found.price is None:
        return "no price is known: pass --cloud or --price-per-gib"
    if found.priced:
        return "no money is saved, since crossing zones costs nothing here"
    return "the money is not known without shuffle bytes: pass --prometheus"


def _reasons(found: PoolReport) -> str:
    counts: dict[str, int] = {}
    for each in found.applications:
        counts[each.why] = counts.get(each.why, 0) + 1
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return "; ".join(f"{why} ({count})" for why, count in ranked[:3])


def applications_report(found: PoolReport, nodes: tuple[Node, ...], form: Format) -> list[RenderableType]:
    """What to print for people, from top to bottom."""
    wide, naming = form is Format.WIDE, Naming.of(nodes, whole=form is Format.WIDE)
    parts: list[RenderableType] = [Text(headline(found), style="bold")]
    if line := directions(found):
        parts.append(Text(line))
    if found.applications:
        shown = found.applications if wide else found.applications[:_MOST_ROWS]
        parts += [heading("Applications: as they are -> as Ballast would have placed them, all together")]
        parts.append(table(APPLICATION_COLUMNS, [application_row(each) for each in shown], right=_RIGHT, wrap=["why"]))
        if len(shown) < len(found.applications):
            parts.append(Text(f"... and {len(found.applications) - len(shown)} more: see -o wide", style="dim"))
    if rows := read_rows(found):
        parts += [heading("Reads from brokers across zones"), table(READ_COLUMNS, rows, right=READ_COLUMNS[1:])]
    parts += _slow(found, naming)
    parts += [heading("Moves that would help now, if the gaps between nodes stay")]
    if rows := move_rows(found):
        parts.append(table(MOVE_COLUMNS, [[naming.short(cell) for cell in row] for row in rows], right=["gain"]))
    else:
        parts.append(Text(no_moves(found)))
    parts.append(heading("What this is based on"))
    parts += [Text(f"- {line}") for line in basis(found)]
    return parts


APPLICATION_COLUMNS = [
    "application", "executors", "zones", "traffic", "cross-zone", "cross-rack", "shuffle", "per month", "saves", "why",
]  # fmt: skip
_RIGHT = ["executors", "shuffle", "per month", "saves"]
READ_COLUMNS = ["application", "reads", "across zones", "client.rack alone", "placed", "both", "client.rack saves", "placement adds"]  # fmt: skip  # noqa: E501


def application_row(each: ApplicationReport) -> list[str]:
    before, after = each.before, each.after
    why = f"nothing to gain: {each.why}" if each.verdict is Verdict.NOTHING_TO_GAIN else each.why
    if each.verdict is Verdict.GAIN:
        why = f"{each.relocated} of {each.executors} elsewhere"
    return [
        each.name,
        str(each.executors),
        _zones(each),
        BASES[each.basis],
        _change(before.shares.zone, after.shares.zone),
        _change(before.shares.rack, after.shares.rack),
        _volume(each),
        dollars(before.dollars_per_month),
        dollars(each.saved_dollars_per_month),
        f"{why}; {each.unplaced} without a place" if each.unplaced else why,
    ]


def _change(before: float | None, after: float | None) -> str:
    return "-" if before is None and after is None else f"{percent(before)} -> {percent(after)}"


def _zones(each: ApplicationReport) -> str:
    """As they are, and as Ballast would have placed them if that differs."""
    here, there = (
        " ".join(f"{zone or '?'}:{count}" for zone, count in sorted(zones.items()))
        for zones in (each.zones, each.placed_zones)
    )
    return here if here == there or each.verdict is not Verdict.GAIN else f"{here} -> {there}"


def directions(found: PoolReport) -> str:
    """What crosses zones now, and what each direction of it costs; empty where the bytes are not known."""
    crossing = found.zone_bytes_per_second
    if crossing is None:
        return ""
    sign = "at most " if any(each.volume is Volume.UPPER_BOUND for each in found.applications) else ""
    told = f"Between zones now: {sign}{rate(crossing)}"
    if found.price is None:
        return f"{told}."
    out, into = found.price.out_per_month(crossing), found.price.in_per_month(crossing)
    return f"{told}. A month costs {dollars(out)} for what leaves a zone and {dollars(into)} for what enters one."


def _volume(each: ApplicationReport) -> str:
    return f"{_sign(each.volume)}{rate(each.shuffle_bytes_per_second)}"


def _sign(volume: Volume) -> str:
    return "<= " if volume is Volume.UPPER_BOUND else ""


def read_rows(found: PoolReport) -> list[list[str]]:
    return [
        [
            each.name,
            f"{_sign(reads.volume)}{rate(reads.total_bytes_per_second)}",
            rate(reads.now),
            rate(reads.with_client_rack),
            rate(reads.placed),
            rate(reads.placed_with_client_rack),
            _worth(reads.now - reads.with_client_rack, found),
            _worth(reads.with_client_rack - reads.placed_with_client_rack, found),
        ]
        for each in found.applications
        if (reads := each.reads) is not None
    ]


def _worth(bytes_per_second: float, found: PoolReport) -> str:
    """In dollars a month, or in bytes where there is no price."""
    return rate(bytes_per_second) if found.price is None else dollars(found.price.per_month(bytes_per_second))


def _slow(found: PoolReport, naming: Naming) -> Iterator[RenderableType]:
    if rows := slow_rows(found):
        yield heading("Nodes that make applications slow, at equal bytes per task")
        yield table(SLOW_COLUMNS, [[naming.short(cell) for cell in row] for row in rows], right=SLOW_COLUMNS[1:])
    if skewed := skew_rows(found):
        yield heading("Slow because of their data, not because of their node: a move would not help")
        yield table(SKEW_COLUMNS, [[naming.short(cell) for cell in row] for row in skewed], right=SKEW_COLUMNS[2:])


SLOW_COLUMNS = ["node", "slowness", "slow executors", "score", "pressure"]
SKEW_COLUMNS = ["executor", "node", "slowness", "bytes"]


MOVE_COLUMNS = ["executor", "from", "to", "gain"]


def move_rows(found: PoolReport) -> list[list[str]]:
    return [[each.executor, each.source, each.target, points(each.gain)] for each in found.moves[:_MOST_ROWS]]


def no_moves(found: PoolReport) -> str:
    """None, and the most frequent reasons."""
    first = {refusal.reason: refusal.detail for refusal in reversed(found.refusals)}
    counts = Counter(refusal.reason for refusal in found.refusals)
    told = "; ".join(
        f"{reason.value} ({count}){f', such as: {first[reason]}' if first[reason] else ''}"
        for reason, count in counts.most_common(2)
    )
    return f"none: {told}" if told else "none: no gap between nodes calls for one"


def slow_rows(found: PoolReport) -> list[list[str]]:
    return [
        [each.node, f"{each.slowness:.2f}", str(each.executors), points(each.score), percent(each.pressure_ratio)]
        for each in found.slowness.nodes[:_MOST_ROWS]
    ]


def skew_rows(found: PoolReport) -> list[list[str]]:
    return [
        [each.executor, each.node, f"{each.slowness:.2f}", f"{each.bytes_ratio:.2f}"]
        for each in found.slowness.skewed[:_MOST_ROWS]
    ]


def basis(found: PoolReport) -> Iterator[str]:
    """What was measured, declared and assumed, and what is missing."""
    yield (
        "Assumed: an application that no SparkTopology declares is one component whose executors all exchange with "
        "each other."
    )
    yield (
        "Shares of traffic: as `plan` and `status` show them. Measured is what Spark's metrics show of each executor; "
        "where a rate is neither measured nor declared, it weighs as much as the others."
    )
    for volume in Volume:
        count = sum(each.volume is volume and not each.remote_shuffle for each in found.applications)
        if count:
            yield f"Shuffle of {count} {'application' if count == 1 else 'applications'}: {_VOLUMES[volume]}."
    yield f"Price between zones: {found.price.source}." if found.price else "Price between zones: not known."
    if not found.metrics.available:
        yield f"Metrics: {found.metrics.reason}{': ' if found.metrics.message else ''}{found.metrics.message}."
    if not found.slowness.measured_executors:
        yield "Slow nodes: not known, because no executor has task metrics."
    yield from _reads_basis(found)
    yield "Moves: an application whose workload is not declared counts as Streaming; one look counts as enough."
    yield "Placed: where Ballast would have placed them at their start. Running executors are not moved for it."
    yield (
        "One zone: an application with all its executors in one zone stops when that zone fails. "
        "`maxExecutorsPerZonePercent` keeps a share of them elsewhere, at the cost of traffic between zones."
    )


def _reads_basis(found: PoolReport) -> Iterator[str]:
    volumes = Counter(each.reads.volume for each in found.applications if each.reads is not None)
    if not volumes:
        yield (
            "client.rack: not known: no SparkTopology declares reads from brokers, and no application is known to read "
            "from Kafka and has measured shuffle and network traffic. Name it with --kafka."
        )
        return
    if count := volumes[Volume.UPPER_BOUND]:
        zones = ", ".join(found.assumed_broker_zones)
        yield (
            f"Reads of {count} {'application' if count == 1 else 'applications'}: upper bound: the pods' network "
            f"traffic without the shuffle. Brokers assumed to lead equal parts in {zones} (--broker-zones)."
        )
    yield (
        "client.rack: set to each executor's own zone, see `ballast docs routing`. It needs a replica in each zone "
        "that has brokers. These reads are not part of PER MONTH."
    )


def applications_document(found: PoolReport) -> dict[str, Any]:
    return {
        "headline": headline(found),
        "time": instant(found.taken_at),
        "nodes": found.nodes,
        "zones": found.zones,
        "price": None
        if found.price is None
        else {"outPerGiB": found.price.out_per_gib, "inPerGiB": found.price.in_per_gib, "source": found.price.source},
        "crossZoneBytesPerSecond": rounded(found.zone_bytes_per_second),
        "costPerMonth": rounded(found.dollars_per_month) if found.priced else None,
        "costPerMonthByDirection": _by_direction(found),
        "savedPerMonth": rounded(found.saved_dollars_per_month) if found.priced else None,
        "verdicts": {verdict.value: found.verdicts.get(verdict, 0) for verdict in Verdict},
        "applications": [_application(each) for each in found.applications],
        "slowNodes": [
            {
                "node": each.node,
                "slowness": rounded(each.slowness),
                "executors": each.executors,
                "score": rounded(each.score),
                "pressure": rounded(each.pressure_ratio),
            }
            for each in found.slowness.nodes
        ],
        "skewed": [
            {
                "executor": each.executor,
                "node": each.node,
                "slowness": rounded(each.slowness),
                "bytesRatio": rounded(each.bytes_ratio),
            }
            for each in found.slowness.skewed
        ],
        "moves": [
            {"executor": each.executor, "from": each.source, "to": each.target, "gain": rounded(each.gain)}
            for each in found.moves
        ],
        "basis": list(basis(found)),
    }


def _by_direction(found: PoolReport) -> dict[str, float | None] | None:
    crossing = found.zone_bytes_per_second
    if found.price is None or crossing is None:
        return None
    return {
        "out": rounded(found.price.out_per_month(crossing)),
        "in": rounded(found.price.in_per_month(crossing)),
    }


def _application(each: ApplicationReport) -> dict[str, Any]:
    return {
        "application": each.key,
        "name": each.name,
        "traffic": each.basis.value,
        "executors": each.executors,
        "zones": dict(sorted(each.zones.items())),
        "racks": dict(sorted(each.racks.items())),
        "placedZones": dict(sorted(each.placed_zones.items())),
        "verdict": each.verdict.value,
        "why": each.why,
        "remoteShuffle": each.remote_shuffle,
        "volume": each.volume.value,
        "shuffleBytesPerSecond": rounded(each.shuffle_bytes_per_second),
        "before": _traffic(each.before),
        "after": _traffic(each.after),
        "savedPerMonth": rounded(each.saved_dollars_per_month),
        "relocated": each.relocated,
        "unplaced": each.unplaced,
        "reads": _reads(each.reads),
    }


def _traffic(traffic: Traffic) -> dict[str, Any]:
    return {
        "crossZone": rounded(traffic.shares.zone),
        "crossRack": rounded(traffic.shares.rack),
        "crossZoneBytesPerSecond": rounded(traffic.zone_bytes_per_second),
        "crossRackBytesPerSecond": rounded(traffic.rack_bytes_per_second),
        "costPerMonth": rounded(traffic.dollars_per_month),
    }


def _reads(reads: Reads | None) -> dict[str, float | str | None] | None:
    if reads is None:
        return None
    return {
        "bytesPerSecond": rounded(reads.total_bytes_per_second),
        "volume": reads.volume.value,
        "crossZoneBytesPerSecond": rounded(reads.now),
        "withClientRack": rounded(reads.with_client_rack),
        "placed": rounded(reads.placed),
        "placedWithClientRack": rounded(reads.placed_with_client_rack),
    }


def dollars(amount: float | None) -> str:
    return "-" if amount is None else f"{'-' if amount < -0.5 else ''}${abs(amount):,.0f}"


def rate(bytes_per_second: float | None) -> str:
    """In binary units, as prices are per GiB."""
    if bytes_per_second is None:
        return "-"
    value, unit = bytes_per_second, "B/s"
    for larger in ("KiB/s", "MiB/s", "GiB/s"):
        if value < 1024.0:
            break
        value, unit = value / 1024.0, larger
    return f"{value:.1f} {unit}" if unit != "B/s" else f"{value:.0f} {unit}"
