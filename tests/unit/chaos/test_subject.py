from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.chaos.subject import comparable_sinks, prepare
from penstock.connectors.base import Place, SinkConnector
from penstock.connectors.memory import MemorySink
from penstock.connectors.registry import SINKS, catalogue, source_connector
from penstock.errors import TopologyError
from penstock.topology.loading import load_topology
from penstock.topology.model import FrozenOptions, Topology
from penstock.validation import validate

TOPOLOGY = """\
topology: visits
sources: {visits: SOURCE}
operators: {home: {from: visits, dup: }}
sinks: {out: {from: home, file: out.jsonl}, seen: {from: home, console: true}}
"""
FILE = '{file: visits.csv, schema: "user string"}'


def topology(folder: Path, source: str = FILE, sets: dict[str, str] | None = None) -> Topology:
    file = folder / "topology.yaml"
    file.write_text(TOPOLOGY.replace("SOURCE", source))
    read, problems = load_topology(file, catalogue(), sets or {})
    assert read is not None
    assert [str(problem) for problem in [*problems, *validate(read, catalogue())]] == []
    return read


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "visits.csv").write_text("ann\n" * 1000)
    return tmp_path


def test_the_input_is_cut_into_epochs_enough_for_the_kills(folder: Path) -> None:
    subject = prepare(topology(folder), {}, kills=5)
    assert subject.tuples == 1000
    assert subject.sets == ("epoch.max_tuples=34", "epoch.interval=0")
    assert subject.epochs == 30
    assert subject.notes == ()


def test_with_replicas_the_stream_lasts_until_each_is_replaced(folder: Path) -> None:
    subject = prepare(topology(folder), {}, kills=5, replicas=2)
    assert subject.replicas is not None
    paced = subject.replicas.paced(subject.epochs, start=8.0)
    assert paced.number == 2
    assert subject.epochs * paced.interval >= 8 * 3 * 7, "a recovery for each blow"
    assert subject.replicas.paced(10**6, 8.0).interval == 0.2
    assert "replicas=2" in paced.sets
    assert not any(item.startswith("replicas") for item in subject.sets)


def test_the_interval_of_the_user_is_that_of_the_replicas_and_not_of_the_undisturbed_run(folder: Path) -> None:
    subject = prepare(topology(folder), {"epoch.interval": "300ms"}, kills=5, replicas=2)
    assert subject.replicas is not None
    assert subject.replicas.paced(100, 8.0).interval == 0.3
    assert "epoch.interval=0" in subject.sets


def test_what_the_user_sets_wins(folder: Path) -> None:
    sets = {"epoch.max_tuples": "500"}
    subject = prepare(topology(folder, sets=sets), sets, kills=5)
    assert subject.sets == ("epoch.interval=0", "epoch.max_tuples=500")
    assert subject.epochs == 2
    assert "only 2 epochs" in subject.notes[0]


def test_a_rate_does_not_decide_where_epochs_end(folder: Path) -> None:
    paced = "{generator: {id: sequence}, count: 100, rate: 10}"
    subject = prepare(topology(folder, paced), {}, kills=5)
    again = topology(folder, paced, dict(item.split("=", 1) for item in subject.sets))
    connector = source_connector(again.sources[0], Place("visits", "visits", folder))
    first = connector.cut(connector.start(), 4)
    assert connector.cut({**first.end, "since": first.end["since"] - 1}, 4).tuples == 4
    assert (again.epoch.max_tuples, again.epoch.interval) == (4, 0)


@pytest.mark.parametrize(("source", "said"), [
    ('{file: visits.csv, follow: true, schema: "user string"}', "--set sources.visits.follow=false"),
    ("{generator: {id: sequence}}", "--set sources.visits.count=10000"),
    ('{spout: "endless:Waiting", schema: "id int"}', "after 3 tuples it waits for more"),
])  # fmt: skip
def test_input_without_end_is_refused_and_told_how_to_end(folder: Path, source: str, said: str) -> None:
    (folder / "endless.py").write_text(
        "from penstock import Spout\n"
        "class Waiting(Spout):\n"
        "    def emit_from(self, offset, limit):\n"
        "        return iter(range(offset, min(3, offset + limit)))\n"
    )
    with pytest.raises(TopologyError, match="source 'visits' never ends") as caught:
        prepare(topology(folder, source), {}, kills=5)
    assert said in str(caught.value)


@dataclass(frozen=True)
class Kept(MemorySink):
    """A sink whose rows can be read again."""

    def redirected(self, folder: Path) -> SinkConnector:
        return self

    def read_back(self) -> Iterator[pa.RecordBatch]:
        return iter(())


def test_sinks_that_keep_nothing_are_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = topology(folder)
    read = replace(written, sinks=(replace(written.sinks[0], kind="memory", options=FrozenOptions()),
                                   written.sinks[1]))  # fmt: skip
    with pytest.raises(TopologyError, match=r"no sink keeps rows .*\(out: memory, seen: console\)"):
        comparable_sinks(read, folder)
    monkeypatch.setitem(SINKS, "memory", Kept)  # type: ignore[misc]
    found, left_out = comparable_sinks(read, folder)
    assert list(found) == ["out"]
    assert left_out == ("seen",)


def test_a_sink_that_would_write_to_its_real_place_is_refused(folder: Path) -> None:
    (folder / "own.py").write_text(
        "from penstock.connectors.base import SinkConnector, Staged\n"
        "class Real(SinkConnector):\n"
        "    @classmethod\n"
        "    def configure(cls, place, options): return cls()\n"
        "    def stage(self, batches): return Staged(0)\n"
        "    def commit(self, epoch, staged): pass\n"
    )
    written = topology(folder)
    own = replace(written.sinks[0], kind="custom", options=FrozenOptions(custom="own:Real"))
    with pytest.raises(TopologyError, match="sink 'out' would write to its real place"):
        comparable_sinks(replace(written, sinks=(own,)), folder)
