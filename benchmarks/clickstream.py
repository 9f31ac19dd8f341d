"""The aims of `examples.clickstream`: bytes across zones, back-off, and that no click is lost or doubled."""

from __future__ import annotations

import json

from benchmarks.report import FOLDER, Aim, Baseline, Result, machine, write
from examples.clickstream.__main__ import LEAST_NEAR_RATIO, MOST_NEAR_RATIO, MOST_ZONE_BYTES, main


def run() -> list[Result]:
    folder = FOLDER / "clickstream"
    # What is not as expected is an aim that is missed.
    main(["--output", str(folder)])
    found = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    before, after = found["jobZoneBytesPerClick"]["without"], found["jobZoneBytesPerClick"]["with"]
    results = [
        Result(
            "a click",
            "bytes of the job across zones",
            after,
            "B",
            Baseline("without Ballast", before),
            Aim(MOST_ZONE_BYTES, of_ratio=True),
        ),
        Result(
            "near reader stalled", "records to it", found["nearRatios"]["stalled"], "share", aim=Aim(MOST_NEAR_RATIO)
        ),
        Result(
            "near reader reads on",
            "records to it",
            found["nearRatios"]["again"],
            "share",
            aim=Aim(LEAST_NEAR_RATIO, at_least=True),
        ),
    ]
    for name, ran in found["runs"].items():
        case = f"{name} Ballast"
        wrong = abs(ran["sent"] - ran["different"]) + abs(ran["delivered"] - ran["different"])
        results.append(Result(case, "clicks lost or twice", wrong, "clicks", aim=Aim(0)))
        results.append(Result(case, "ledger balanced", float(ran["balanced"]), "", aim=Aim(1, at_least=True)))
    return results


if __name__ == "__main__":
    at_start = machine()
    write("clickstream", run(), before=at_start)
