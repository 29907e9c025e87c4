"""Penstock. `penstock_job.py WORK`.

The clock runs from the started session, in which the job was run before with less input, to the last commit. A recovery
is a plain run, started as `penstock run` starts one.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from work import AMOUNTS, LETTERS, PARALLELISM, STEP, USERS, WORD_BYTES, Work, read_work, report

from penstock import Topology
from penstock.bench.custom_code import of_batch, of_tuple
from penstock.runtime.run import Run, RunSettings
from penstock.spark.session import SessionSettings, prepare_workers, start_session
from penstock.spark.warm_up import warm_up

MASTER = f"local[{PARALLELISM}]"
WORD = f"repeat(char(97 + id * {STEP} % {len(LETTERS)}), {WORD_BYTES})"
EVENTS = "id bigint, user string, kind string, page string, price double, note string"


def topology(work: Work) -> Topology:
    start = Topology(work.job)
    if work.job == "json":
        ended = (
            start.source("events", file=str(work.input), format="json", schema=EVENTS)
            .filter("price > 10").select("user", "upper(kind) as kind", "price * 1.23 as gross").count("user", "kind")
        )
    else:
        pace = {} if work.rate is None else {"rate": work.rate}
        numbers = start.source("numbers", generator={"id": "sequence"}, count=work.tuples, **pace)
        if work.job == "stateless":
            tuples = numbers.select("id", f"{WORD} as payload")
            ended = tuples.filter("length(payload) > 0").filter("payload <> ''").select("id")
        elif work.job in ("word-count", "recovery"):
            ended = numbers.select(f"{WORD} as word").count("word")
        else:
            payments = numbers.select("id", f"id * {STEP} % {USERS} as user", f"id % {AMOUNTS} as amount")
            if work.job == "function":
                ended = payments.custom(of_tuple, keep="id", emits="total bigint")
            else:
                ended = payments.custom(of_batch, emits="id bigint, total bigint")
    return ended.sink("out", file=str(work.out / "rows.csv"), header=False).with_folder(work.folder)


def timed(work: Work, spark: object) -> float:
    work.out.mkdir(parents=True)
    run = Run(topology(work), RunSettings(master=MASTER, state=work.folder / "state"))
    began = time.monotonic()
    run.start(spark)
    run.wait()
    return time.monotonic() - began


def recovered(work: Work) -> None:
    work.out.mkdir(parents=True, exist_ok=True)
    run = Run(topology(work), RunSettings(master=MASTER, state=work.folder / "state"))
    run.start()
    run.wait()


def main() -> None:
    work = read_work(sys.argv[1])
    if work.job == "recovery":
        recovered(work)
        return
    prepare_workers(MASTER)
    spark = start_session(SessionSettings(work.job, MASTER, Path(work.folder) / "logs", PARALLELISM))
    warm_up(spark)
    timed(work.warm_up(), spark)
    report(timed(work, spark))
    spark.stop()


if __name__ == "__main__":
    main()
