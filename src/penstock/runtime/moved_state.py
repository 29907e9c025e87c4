"""Arrange the state of a snapshot for a topology whose plan has changed: Spark finds state by its place in the plan."""

from __future__ import annotations

import json
from pathlib import Path

from penstock.runtime.state_files import files_after, link_or_copy, relocate, write_anew
from penstock.runtime.state_match import StateMatch


def move_state(saved: Path, batch: int, match: StateMatch, laid_out: Path, target: Path, read_at: Path) -> None:
    """Put the checkpoint `saved`, as it is after a batch, into `target` in the arrangement of `laid_out`.

    `laid_out` is a checkpoint that the new topology has left after one batch without input: it shows how many sources
    the plan reads, and has the empty state that new operators begin with.
    """
    for file in files_after(saved, batch):
        if file.parts[0] != "state":
            link_or_copy(saved / file, target / file)
            continue
        _, old, *rest = file.parts
        for new in (new for new, taken in match.taken.items() if taken == int(old)):
            link_or_copy(saved / file, target.joinpath("state", str(new), *rest))
    for new in match.empty:
        _lay_empty(laid_out, target, new, batch)
    for notes in target.glob("state/*/_metadata"):
        _renumber(notes, int(notes.parent.name))
    relocate(target, read_at)
    _fit_offsets(target, laid_out)


def _lay_empty(laid_out: Path, target: Path, operator: int, batch: int) -> None:
    """The empty state, as that of the batch: its first version there takes the version of this batch's state."""
    for file in files_after(laid_out, 0):
        if file.parts[:2] == ("state", str(operator)):
            name = f"{batch + 1}.zip" if file.name == "1.zip" else file.name
            link_or_copy(laid_out / file, target / file.with_name(name))


def _renumber(notes: Path, operator: int) -> None:
    files = [path for path in (notes / "metadata", *notes.glob("v2/*")) if path.is_file()]
    for file in files:
        version, text = file.read_text().split("\n", 1)
        metadata = json.loads(text)
        old = metadata["operatorInfo"]["operatorId"]
        if old != operator:
            metadata["operatorInfo"]["operatorId"] = operator
            moved = json.dumps(metadata, separators=(",", ":")).replace(f"/state/{old}/", f"/state/{operator}/")
            write_anew(file, f"{version}\n{moved}")


def _fit_offsets(target: Path, laid_out: Path) -> None:
    """Every place where the plan reads a source has a line with the whole epoch, the same in all of them."""
    places = len((laid_out / "offsets" / "0").read_text().splitlines()) - 2
    for entry in (target / "offsets").iterdir():
        version, metadata, epoch, *_ = entry.read_text().splitlines()
        write_anew(entry, "\n".join([version, metadata, *[epoch] * places]))
