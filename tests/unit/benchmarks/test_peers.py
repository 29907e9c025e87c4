"""What `make bench-peers` writes down, also when somebody stops it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import peers
import pytest
from side_by_side.contestants import PENSTOCK
from side_by_side.recovery import Recovered
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


def test_a_job_of_an_earlier_run_keeps_its_date_and_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_after(1, monkeypatch)
    page, old, new = tmp_path / "page.md", tmp_path / "old.json", tmp_path / "new.json"
    runs = {job: {PENSTOCK: [{"seconds": 2.0}]} for job in ("word-count", "json")}
    command = "python benchmarks/peers.py --job word-count"
    old.write_text(json.dumps({
        "runs": runs, "amounts": {"word-count": 8.0, "json": 9.0}, "recovery": {},
        "measured": {"word-count": {"date": "2026-01-02", "command": command}},
    }))  # fmt: skip
    run(monkeypatch, "--job", "stateless", "--beside", str(old), "--markdown", str(page), "--json", str(new),
        "--svg", str(tmp_path))  # fmt: skip
    said = f"Of earlier runs: word-count (2026-01-02, `{command}`); json (nobody noted when)."
    assert said in page.read_text()
    measured = json.loads(new.read_text())["measured"]
    assert measured["word-count"] == {"date": "2026-01-02", "command": command}
    assert measured["stateless"]["command"].startswith("python benchmarks/peers.py --job stateless")
    assert "(peers.svg)" in page.read_text()
    assert "stateless, PyFlink 2.3.0" in (tmp_path / "peers.svg").read_text()
    run(monkeypatch, "--job", "stateless", "--beside", str(new), "--markdown", str(page))
    assert said in page.read_text(), "also the run after the next one knows it"


def test_a_recovery_that_is_measured_later_leaves_the_ratios_and_their_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_after(1, monkeypatch)
    page = tmp_path / "page.md"
    run(monkeypatch, "--job", "stateless", "--markdown", str(page), "--svg", str(tmp_path))
    before = page.read_text()

    def take(self: Turns) -> Iterator[None]:
        self.recovered[PENSTOCK] = [Recovered(14.0, 1.0, 0, 0, 0)]
        yield

    monkeypatch.setattr(Turns, "take", take)
    run(monkeypatch, "--job", "recovery", "--markdown", str(page))
    after = page.read_text()
    assert after.startswith(before.rstrip("\n"))
    assert "| 14.0 | 1.0 | 0 | 0 | 0 |" in after.partition("## Killed and started again")[2]


@pytest.mark.parametrize("text", [None, "no JSON", "[]", '{"runs": {}}'])
def test_a_file_to_stand_beside_that_is_none_is_told_before_anything_is_measured(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "peers.json"
    if text is not None:
        file.write_text(text)
    assert run(monkeypatch, "--job", "stateless", "--beside", str(file)) == 2
    assert f"--beside {file}: " in capsys.readouterr().err


def test_a_page_stays_as_it_is_while_nothing_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped_after(0, monkeypatch)
    page = tmp_path / "page.md"
    page.write_text("# Page\n")
    assert run(monkeypatch, "--markdown", str(page)) == peers.INTERRUPTED
    assert page.read_text() == "# Page\n"
