"""`penstock checkpoint`, `backup`, `restore` and `state`, as a user types them, where they need no Spark."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from penstock.connectors.registry import catalogue
from penstock.errors import CoordinationError, TopologyError
from penstock.runtime.compatibility import shape_of
from penstock.runtime.state_folder import StateFolder
from penstock.topology.loading import load_topology

from ..runtime.stored_state import stored
from .typed import enter_project, penstock

TOPOLOGY = """\
topology: words
sources:
  s: {file: s.csv, schema: "word string"}
operators:
  counts: {from: s, count: word}
sinks:
  out: {from: counts, file: out.jsonl}
"""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateFolder:
    enter_project(tmp_path, monkeypatch, TOPOLOGY, s="a\n")
    topology, problems = load_topology(tmp_path, catalogue())
    assert topology is not None, problems
    return stored(tmp_path / ".penstock/words", of=shape_of(topology, 2))


def test_a_checkpoint_is_taken_listed_and_removed(state: StateFolder) -> None:
    taken = penstock("checkpoint", "--name", "noon")
    assert taken.exit_code == 0, taken.output
    assert taken.stdout.startswith("checkpoint 'noon' after epoch 3, ")
    listed = [json.loads(line) for line in penstock("checkpoint", "--list", "--json").stdout.splitlines()]
    assert [(each["name"], each["epoch"], each["instances"], each["operators"]) for each in listed] == [
        ("noon", 3, 2, ["counts"])]
    assert "noon" in penstock("checkpoint", "--list").stdout
    assert penstock("checkpoint", "--delete", "noon").exit_code == 0
    assert penstock("checkpoint", "--list").stdout == ""


def test_checkpoints_of_all_nodes_are_listed(state: StateFolder, tmp_path: Path) -> None:
    penstock("checkpoint", "--name", "noon")
    for node, name in (("n1", "a"), ("n2", "b")):
        shutil.copytree(state.snapshots / "noon", tmp_path / "nodes" / node / "words/state/snapshots" / name)
    listed = penstock("checkpoint", "--list", "--json", "--nodes", "nodes").stdout.splitlines()
    assert [(each["node"], each["epoch"]) for each in map(json.loads, listed)] == [("n1", 3), ("n2", 3)]


def test_a_checkpoint_is_removed_from_the_node_that_has_it(state: StateFolder, tmp_path: Path) -> None:
    penstock("checkpoint", "--name", "noon")
    places = [tmp_path / "nodes" / node / "words/state/snapshots" / name
              for node, name in (("n1", "a"), ("n2", "b"), ("n1", "both"), ("n2", "both"))]  # fmt: skip
    for place in places:
        shutil.copytree(state.snapshots / "noon", place)
    removed = penstock("checkpoint", "--delete", "b", "--nodes", "nodes")
    assert (removed.exit_code, removed.stdout) == (0, "checkpoint 'b' is removed\n")
    several = penstock("checkpoint", "--delete", "both", "--nodes", "nodes")
    assert (several.exit_code, "nodes n1 and n2 each have a checkpoint 'both'" in several.stderr) == (1, True)
    assert penstock("checkpoint", "--delete", "nowhere", "--nodes", "nodes").exit_code == 1
    assert [place.is_dir() for place in places] == [True, False, True, True]
    assert (state.snapshots / "noon").is_dir()


def test_a_backup_says_how_to_go_on_from_it(state: StateFolder, tmp_path: Path) -> None:
    done = penstock("backup", ".", "kept")
    assert done.exit_code == 0, done.output
    assert "`penstock restore kept` goes on from it" in done.stdout
    again = penstock("backup", ".", "kept")
    assert isinstance(again.exception, CoordinationError)
    assert "kept is not empty" in str(again.exception)


def test_restoring_says_what_will_be_and_changes_nothing_when_dry(state: StateFolder) -> None:
    penstock("backup", ".", "kept")
    dry = penstock("restore", "kept", "--as", "copy", "--dry-run")
    assert dry.exit_code == 0, dry.output
    assert "'copy' can go on from epoch 3; nothing was changed" in dry.stdout
    assert not state.path.with_name("copy").exists()
    done = penstock("restore", "kept", ".", "--as", "copy")
    assert done.exit_code == 0, done.output
    assert "'copy' is at epoch 3; `penstock run . --set topology=copy` goes on from there" in done.stdout
    assert StateFolder(state.path.with_name("copy")).committed().epoch == 3


def test_sizes_and_versions_are_shown_without_spark(state: StateFolder) -> None:
    (line,) = penstock("state", ".", "--json").stdout.splitlines()
    assert json.loads(line) == {"operator": "counts", "kind": "count", "epoch": 3, "version": 3, "instances": 2,
                                "bytes": 6 * len("changes of 1 in 0"), "copies": 1}
    assert "state of words after epoch 3" in penstock("state", ".").stdout
    assert penstock("state", ".", "--key", "word=a").exit_code == 2


def test_a_swap_that_was_interrupted_is_carried_out_by_the_next_command(state: StateFolder) -> None:
    (state.path / "ready").mkdir()
    shape = json.loads(state.shape.read_text())
    (state.path / "ready" / "shape").write_text(json.dumps({**shape, "asked instances": 7}))
    assert penstock("checkpoint", "--list").exit_code == 0
    assert json.loads(state.shape.read_text())["asked instances"] == 7
    assert not (state.path / "ready").exists()


@pytest.mark.parametrize(("wanted", "said"), [
    ("counts=0", "needs at least one instance"),
    ("long=3", "operator 'long' remembers nothing that could be divided"),
    ("none=3", "there is no operator 'none'"),
])
def test_what_cannot_be_rescaled_is_an_error_of_the_topology(state: StateFolder, wanted: str, said: str) -> None:
    with_filter = TOPOLOGY.replace("operators:\n", "operators:\n  long: {from: s, filter: length(word) > 3}\n")
    Path("topology.yaml").write_text(with_filter)
    refused = penstock("rescale", ".", wanted)
    assert isinstance(refused.exception, TopologyError), refused.output
    assert said in str(refused.exception)


def test_a_rescale_without_a_number_is_told_how_to_write_one(state: StateFolder) -> None:
    refused = penstock("rescale", ".", "counts")
    assert refused.exit_code == 2
    assert "write OPERATOR=N" in refused.stderr


def test_a_topology_that_never_ran_has_no_state_to_divide(state: StateFolder) -> None:
    refused = penstock("rescale", ".", "counts=2", "--state", "elsewhere")
    assert isinstance(refused.exception, CoordinationError)
    assert "has committed no epoch yet" in str(refused.exception)


def test_an_operator_without_state_has_none_to_show(state: StateFolder) -> None:
    refused = penstock("state", ".", "none")
    assert isinstance(refused.exception, TopologyError)
    assert "with state there are: counts" in str(refused.exception)
