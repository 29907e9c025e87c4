"""What `make bench-peers` writes down, also when somebody stops it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import peers
import pytest
from side_by_side.contestants import PENSTOCK
from side_by_side.runs import Ran
from side_by_side.turns import Turns


def stopped_after(turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes in the turn after so many."""

    def take(self: Turns) -> Iterator[None]:
        for _ in range(turns):
            self.amounts["stateless"] = 1000.0
            self.runs.setdefault("stateless", {}).setdefault(PENSTOCK, []).append(Ran(2.0))
            yield
        if turns:
            self.runs["stateless"]["pyflink"] = [Ran(4.0)]
        raise KeyboardInterrupt

    monkeypatch.setattr(Turns, "take", take)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["benchmarks/peers.py", *arguments])
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with pytest.raises(SystemExit) as ended:
        peers.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_who_stops_it_keeps_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped_after(2, monkeypatch)
    page, figures = tmp_path / "page.md", tmp_path / "peers.json"
    page.write_text("# Page\n\n## Beside other systems\n\nText.\n\n## More\n")
    assert run(monkeypatch, "--quick", "--markdown", str(page), "--json", str(figures)) == peers.INTERRUPTED
    text = page.read_text()
    assert text.index("Text.") < text.index("K/s (2.00 ×)") < text.index("## More")
    assert "Medians of 1 or 2." in text
    assert "with `python benchmarks/peers.py --quick --markdown page.md --json peers.json`" in text
    assert json.loads(figures.read_text())["runs"]["stateless"]["pyflink"][0]["seconds"] == 4.0
    assert "(2.00 ×)" in capsys.readouterr().out


def test_a_page_stays_as_it_is_while_nothing_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped_after(0, monkeypatch)
    page = tmp_path / "page.md"
    page.write_text("# Page\n")
    assert run(monkeypatch, "--markdown", str(page)) == peers.INTERRUPTED
    assert page.read_text() == "# Page\n"
