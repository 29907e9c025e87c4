"""Pathway with two threads. `pathway_job.py WORK`.

The clock runs from when Pathway, imported and with the job described, is told to run, to its end. There is nothing
to warm up. The input of word counts is persisted every second, from which they are made anew after a failure; to
persist the counts themselves takes a licence key. A source of one's own has to say from where it would go on; those
that come with Pathway do it as `Numbers` does here.
"""

from __future__ import annotations

import os
import sys
import time

from work import AMOUNTS, CHECKPOINT_SECONDS, LETTERS, PARALLELISM, STEP, USERS, Work, read_work, report, word

os.environ["PATHWAY_THREADS"] = str(PARALLELISM)

import pathway as pw

WORDS = [word(number) for number in range(len(LETTERS))]
BACKLOG = 100_000
"""How many tuples a source without a pace may be ahead. With one it needs no limit, and must have none: what Pathway
replays after a kill counts, and nothing goes on once that is more."""
TICKS_PER_SECOND = 10
COMMIT_TUPLES = 100_000
"""After so many a source without a pace says where it is."""


class Event(pw.Schema):
    user: str
    kind: str
    price: float


class Tuple(pw.Schema):
    number: int
    payload: str


class Word(pw.Schema):
    word: str


class Payment(pw.Schema):
    number: int
    user: int
    amount: int


class Numbers(pw.io.python.ConnectorSubject):
    """The numbers as the tuples of the job; goes on from where it was.

    It commits by itself, so that what is committed belongs to one place in the numbers.
    """

    deletions_enabled = False

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work
        self._at = 0

    def _seek(self, state: bytes) -> None:
        self._at = int(state)

    def run(self) -> None:
        step = COMMIT_TUPLES if self._work.rate is None else self._work.rate // TICKS_PER_SECOND
        while self._at < self._work.tuples:
            began = time.monotonic()
            end = min(self._at + step, self._work.tuples)
            self._make(range(self._at, end))
            self._at = end
            self._report_offset(str(end).encode())
            self.commit()
            if self._work.rate is not None:
                time.sleep(max(began + 1 / TICKS_PER_SECOND - time.monotonic(), 0.0))

    def _make(self, numbers: range) -> None:
        if self._work.job == "stateless":
            for number in numbers:
                self.next(number=number, payload=WORDS[number % len(LETTERS)])
        elif self._work.job == "function":
            for number in numbers:
                self.next(number=number, user=number * STEP % USERS, amount=number % AMOUNTS)
        else:
            for number in numbers:
                self.next(word=WORDS[number % len(LETTERS)])


@pw.udf(deterministic=True)
def total(user: int, amount: int) -> int:
    return user * 100 + amount


def describe(work: Work) -> None:
    """The job, as Pathway will run it; each start writes a file of its own, as Pathway begins files anew."""
    file = work.out / f"rows-{len(list(work.out.iterdir()))}"
    if work.job == "json":
        events = pw.io.jsonlines.read(str(work.input), schema=Event, mode="static")
        dear = events.filter(pw.this.price > 10)
        sold = dear.select(user=pw.this.user, kind=pw.this.kind.str.upper(), gross=pw.this.price * 1.23)
        counts = sold.groupby(pw.this.user, pw.this.kind).reduce(
            pw.this.user, pw.this.kind, count=pw.reducers.count())
        pw.io.jsonlines.write(counts, f"{file}.jsonl")
        return
    schema = {"stateless": Tuple, "function": Payment}.get(work.job, Word)
    backlog = BACKLOG if work.rate is None else None
    tuples = pw.io.python.read(
        Numbers(work), schema=schema, name="numbers", max_backlog_size=backlog, autocommit_duration_ms=None)
    if work.job == "stateless":
        kept = tuples.filter(pw.this.payload.str.len() > 0).filter(pw.this.payload != "")
        pw.io.csv.write(kept.select(pw.this.number), f"{file}.csv")
    elif work.job == "function":
        totals = tuples.select(pw.this.number, total=total(pw.this.user, pw.this.amount))
        pw.io.csv.write(totals, f"{file}.csv")
    else:
        counts = tuples.groupby(pw.this.word).reduce(pw.this.word, count=pw.reducers.count())
        pw.io.jsonlines.write(counts, f"{file}.jsonl")


def persistence(work: Work) -> pw.persistence.Config | None:
    if work.job not in ("word-count", "recovery"):
        return None
    return pw.persistence.Config(
        pw.persistence.Backend.filesystem(str(work.folder / "persisted")),
        snapshot_interval_ms=CHECKPOINT_SECONDS * 1000,
    )


def main() -> None:
    work = read_work(sys.argv[1])
    work.out.mkdir(parents=True, exist_ok=True)
    describe(work)
    began = time.monotonic()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE, persistence_config=persistence(work))
    report(time.monotonic() - began)


if __name__ == "__main__":
    main()
