"""What Spark's aggregate finds incomplete, on its way to the driver."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from penstock.epochs.sequence import Anchor
from penstock.spark.failures import Dropped, Failure, FailureLedger, collect_failures
from penstock.spark.unacked import TREE, UnackedTuples
from penstock.topology.model import Topology

SEVENTH = Anchor(3, 0, 7).sequence


def test_tuples_that_are_not_acked_are_failures_beside_those_of_the_tasks(tmp_path: Path) -> None:
    stream = Topology("t", acking=True, ack_timeout=2.5).source("s", rows=[], schema="n bigint")
    topology = stream.custom("m:A", emits="n bigint", on_error="retry(2)", name="own").sink("o", memory=True)
    topology = topology.stream("s").custom("m:B", emits="n bigint", on_error="drop", name="dropping").sink(
        "p", memory=True)
    raised = FailureLedger(tmp_path, "own", keep=True)
    raised.note(SEVENTH, {"n": 7}, "ValueError: no", "own.py:4")
    raised.close(0)
    rows = pa.RecordBatch.from_pydict({"operator": ["own", "dropping"], "tuple": ['{"n": 8}', '{"n": 8}'],
                                       TREE: [SEVENTH + 1] * 2})
    assert UnackedTuples.of(topology, tmp_path).stage(iter([rows])).rows == 2
    assert set(map(str, collect_failures(tmp_path, 3))) == {str(each) for each in (
        Dropped("dropping", 1),
        Failure("own", SEVENTH, "ValueError: no", "own.py:4", {"n": 7}),
        Failure("own", SEVENTH + 1, "not acked within 2.5 s", "", {"n": 8}))}
