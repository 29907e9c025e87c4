"""A backlog worked off in epochs of 200,000: generator → filter → count per key → file.

`backlog.py penstock FOLDER TUPLES`
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

from penstock import Topology
from penstock.runtime.run import Run

KEYS = 1000
MAX_TUPLES = 200_000


def main() -> None:
    folder, tuples = Path(sys.argv[2]), int(sys.argv[3])
    topology = (
        Topology("backlog")
        .source("events", generator={"id": "sequence", "key": f"word({KEYS})", "price": "float(0, 100)"}, count=tuples)
        .filter("price > 10")
        .count("key")
        .sink("out", file=str(folder / "out.jsonl"))
        .with_folder(folder)
    )
    run = Run(replace(topology, epoch=replace(topology.epoch, max_tuples=MAX_TUPLES)))
    run.start()
    began = time.monotonic()
    outcome = run.wait()
    ended = time.monotonic()
    if not outcome.ended or outcome.progress.tuples["events"] != tuples:
        raise SystemExit(f"only {outcome.progress.tuples} of {tuples} tuples were processed")
    print(json.dumps({"tuples_per_second": tuples / (ended - began), "began": began, "ended": ended}))


if __name__ == "__main__":
    main()
