"""Defects of the real classes: ours does the right thing by default, and is told to do as they do to be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Defect:
    class_name: str
    what: str
    """What the real class does, and what ours does instead by default."""
    option: str
    """Our keyword that chooses the real behavior, or the runner's where that is said."""
    value: Any = True


# Pulsar's percentages are binary32. Ours are double everywhere; the runner alone rounds as Pulsar does
# (`pulsar.percent`), before ours sees a score.
DEFECTS: tuple[Defect, ...] = (
    Defect("TransferShedder", "gains of a swap count in debug mode only; ours always", "ignore_gains"),
    Defect("TransferShedder", "nodes that are not alive take part; ours leaves them out", "unregistered_too"),
    Defect("TransferShedder", "nodes with outdated figures still move executors; ours leaves them out", "outdated_too"),
    Defect(
        "TransferShedder", "anything may come back in a swap, each looked at once; ours checks each", "swap_anything"
    ),
    Defect("TransferShedder", "the deviation may be no number; ours is at least 0", "negative_variance"),
    Defect("TransferShedder", "a node without load gives up its executors; ours keeps them", "idle_moves"),
    Defect("ThresholdShedder", "averages of a node that left survive; ours forgets them", "keep_departed"),
    Defect("ThresholdShedder", "the lower-boundary step averages a pass in twice; ours does so once", "average_twice"),
    Defect("ThresholdShedder", "executors without traffic leave too; ours gain nothing by that", "idle_too"),
    Defect("OverloadShedder", "executors without traffic leave too; ours gain nothing by that", "idle_too"),
    Defect(
        "UniformLoadShedder", "records shadow bytes even when nothing can move for them; ours looks on", "rate_only"
    ),
    Defect("TopKBundles", "busiest by bytes in, whatever goes out; ours by both", "inbound_first"),
    # The runner itself does the next three, by what it hands in or leaves open: no keywords of ours.
    Defect(
        "LeastLongTermMessageRate", "an executor both booked and present counts twice; ours counts once", "count_twice"
    ),
    Defect(
        "RoundRobinBrokerSelector",
        "the index runs over a stale list, so turns shift; ours goes on after the node chosen last",
        "by_count",
    ),
    Defect("AvgShedder", "plans are kept by an executor's figures, for ever; ours by name, per planning", "by_values"),
    Defect(
        "UniformLoadShedder",
        "minimum and need stop at 2³¹−1, fractions of what leaves are lost, idle executors leave; ours keeps figures",
        "whole_numbers",
    ),
    Defect("GroupByContainerCount", "fails when an executor was renamed; ours deals afresh", "refuse_renamed"),
    Defect("TaskNameGrouperProxy", "takes hyphens in names for its own; ours never reads names", "by_names"),
    Defect("AvgShedder", "counts of a node that left survive until it returns; ours forgets them", "keep_departed"),
    Defect("AvgShedder", "the middle node pairs with itself and counts twice; ours has no partner", "pair_middle"),
    Defect(
        "AvgShedder", "hits are lost when nothing could be shed; ours keeps them until something is", "forget_in_vain"
    ),
)


def faithful(class_name: str) -> dict[str, Any]:
    """The options under which ours does as the real class does, defects and all."""
    return {defect.option: defect.value for defect in DEFECTS if defect.class_name == class_name}
