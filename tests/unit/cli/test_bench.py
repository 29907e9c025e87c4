"""What `penstock bench` makes of figures, with workloads that nobody runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.bench import measuring, paper
from penstock.bench.figures import Figures
from penstock.bench.measuring import Thoroughness
from penstock.bench.paper import FIGURES, PAPER_LINES, Point, Variant
from penstock.bench.workloads import Workload
from penstock.errors import DeliveryError

from .typed import penstock


def figures_of(name: str, tuples_per_second: float, latency: Sequence[float] = (40.0, 80.0, 100.0)) -> Figures:
    runs = [list(latency)] * 3
    return Figures(name, int(tuples_per_second), [1.0, 1.0], [2.0, 2.0], 1234.0, 10_000.0, runs, "2026-01-02")


KNOWN = {
    "stateless-3": figures_of("stateless-3", 500_000),
    "word-count": figures_of("word-count", 900_000, (130.5, 200.0, 300.0)),
    "custom-tuple": figures_of("custom-tuple", 100_000, (80.0, 100.0, 240.0)),
    "custom-batch": figures_of("custom-batch", 290_000, (80.0, 100.0, 260.0)),
}


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workloads have the figures above; others fail."""

    def measure(chosen: Sequence[Workload], how: Thoroughness, _: Callable[[str], None]) -> Iterator[Figures]:
        for each in chosen:
            if each.name not in KNOWN:
                raise DeliveryError(f"{each.name} ended with 1")
            yield replace(KNOWN[each.name], warm=how.pace.warms_up)

    monkeypatch.setattr(measuring, "measure_workloads", measure)


@pytest.mark.usefixtures("made_up")
def test_the_table_says_which_goals_are_held() -> None:
    lines = penstock("bench", "--only", ",".join(KNOWN)).stdout.splitlines()
    cells = {line.split()[0]: line.split()[1:] for line in lines[1:5]}
    assert cells["stateless-3"] == ["500,000", "40", "80", "100", "50/150", "yes", "4.00", "1,234"]
    assert cells["word-count"][4:6] == ["130", "no"]
    assert cells["custom-tuple"][4:6] == ["90/250", "yes"]
    assert cells["custom-batch"][4:6] == ["90/250", "no"]
    assert "tuples/s: the median of 2 runs; each percentile: the median of 3" in lines
    assert "latency goals: held by 2 of 4" in lines
    assert "a function for each Arrow batch is 2.90 times as fast as one for each tuple (goal: 3): not held" in lines


@pytest.mark.usefixtures("made_up")
def test_what_is_measured_quickly_is_not_judged(tmp_path: Path) -> None:
    done = tmp_path / "done.jsonl"
    done.write_text(penstock("bench", "--only", "stateless-3", "--json").stdout)
    done.write_text(done.read_text() + penstock("bench", "--quick", "--only", "word-count", "--json").stdout)
    shown = penstock("bench", "--quick", "--only", "custom-tuple,custom-batch", "--beside", str(done))
    lines = shown.stdout.splitlines()
    cells = {line.split()[0]: line.split()[1:] for line in lines[1:5]}
    assert cells["stateless-3"][4:6] == ["50/150", "yes"]
    assert "yes" not in cells["custom-tuple"]
    assert "no" not in [*cells["word-count"], *cells["custom-batch"]]
    assert "latency goals: held by 1 of 1" in lines
    assert ("goals are not judged with --quick, as Java is still compiling after so short a warm-up: "
            "word-count, custom-tuple, custom-batch") in lines
    assert "a function for each Arrow batch is 2.90 times as fast as one for each tuple (goal: 3)" in lines


@pytest.mark.usefixtures("made_up")
def test_everything_is_written_after_each_workload_also_when_the_next_one_fails(tmp_path: Path) -> None:
    page, pictures = tmp_path / "docs" / "page.md", tmp_path / "docs" / "images"
    page.parent.mkdir()
    result = penstock("bench", "--only", "word-count,yahoo", "--markdown", str(page), "--svg", str(pictures))
    assert isinstance(result.exception, DeliveryError)
    assert "word-count" in result.stdout
    text = page.read_text()
    assert text.startswith("## Throughput and latency\n")
    assert "| word-count | 900,000 | 130 | 200 | 300 | 130 | no |" in text
    assert "![Throughput](images/throughput.svg)" in text
    assert "![Latency](images/latency.svg)" in text
    assert sorted(each.name for each in pictures.iterdir()) == ["latency.svg", "throughput.svg"]


@pytest.mark.usefixtures("made_up")
def test_it_can_be_measured_in_pieces(tmp_path: Path) -> None:
    done, page = tmp_path / "done.jsonl", tmp_path / "page.md"
    done.write_text(penstock("bench", "--only", "custom-batch,stateless-3", "--json").stdout)
    assert [json.loads(line)["workload"] for line in done.read_text().splitlines()] == ["custom-batch", "stateless-3"]
    penstock("bench", "--only", "word-count", "--beside", str(done), "--markdown", str(page))
    rows = [line.split("|")[1].strip() for line in page.read_text().splitlines() if line.startswith("|")]
    assert rows == ["workload", "---", "stateless-3", "word-count", "custom-batch"]
    assert "- of earlier runs: stateless-3 (2026-01-02), custom-batch (2026-01-02)" in page.read_text()


@pytest.mark.usefixtures("made_up")
def test_a_line_of_something_else_is_told_with_its_place(tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(KNOWN["word-count"].as_json() + '\n\n{"replicas": 2}\n')
    result = penstock("bench", "--quick", "--beside", str(other))
    assert result.exit_code == 2
    assert f"{other}:3: this is not a line that the same command wrote with --json" in result.stderr.replace("\n", "")
    assert penstock("bench", "--beside", str(tmp_path / "none")).exit_code == 2


RATES = "25000,200000"
POINTS = [Point(25_000.0, 24_900.0, 300.0), Point(200_000.0, 60_000.0, 9_000.0)]


@pytest.fixture
def stopped_at_the_second_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(wanted: Sequence[tuple[Variant, int]], *_: object) -> Iterator[tuple[Variant, Point]]:
        points = {point.offered: point for point in POINTS}
        for variant, rate in wanted:
            if variant != wanted[0][0]:
                raise DeliveryError("the run did not come to its end")
            yield variant, points[rate]

    monkeypatch.setattr(paper, "measure", measure)


@pytest.mark.usefixtures("stopped_at_the_second_variant")
def test_the_papers_figures_are_written_as_far_as_they_are_measured(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    result = penstock(
        "bench", "paper", "--figures", "5", "--rates", RATES, "--markdown", str(page), "--svg", str(tmp_path))
    assert isinstance(result.exception, DeliveryError)
    assert "| 5 | word-count | ×1, k = 1 | 60,000 | 25,000 | 300 ms |" in page.read_text()
    assert "| 5 | word-count | ×1, Trident |  | 55,000 |  |" in page.read_text()
    assert "(figure-5.svg)" in page.read_text()
    assert "(figure-5-latency.svg)" in page.read_text()
    drawn = (tmp_path / "figure-5.svg").read_text()
    assert "the paper&#x27;s, on eight machines" in drawn
    assert "×1, Trident" in drawn
    assert drawn.count("stroke-dasharray") == 4, "two lines of the paper's, and their two samples in the legend"


@pytest.mark.usefixtures("stopped_at_the_second_variant")
def test_what_was_measured_of_the_paper_before_stands_beside(tmp_path: Path) -> None:
    done, page = tmp_path / "done.jsonl", tmp_path / "page.md"
    first, *others = FIGURES[5]
    done.write_text("".join(paper.as_json(each, POINTS) + "\n" for each in [*others, *FIGURES[4]]))
    penstock("bench", "paper", "--figures", "5", "--rates", RATES, "--beside", str(done), "--markdown", str(page))
    figures = [line.split("|")[1].strip() for line in page.read_text().splitlines() if line.startswith("|")]
    assert figures[2:] == ["4"] * len(FIGURES[4]) + ["5"] * (len(FIGURES[5]) + len(PAPER_LINES[5]))
    assert f"{others[0].workload} {others[0]}" in page.read_text().partition("of earlier runs: ")[2]
    assert f"word-count {first};" not in page.read_text()


@pytest.mark.usefixtures("stopped_at_the_second_variant")
def test_the_papers_figures_can_be_measured_rate_by_rate(tmp_path: Path) -> None:
    done, page = tmp_path / "done.jsonl", tmp_path / "page.md"
    first, *others = FIGURES[5]
    done.write_text("".join(paper.as_json(each, POINTS) + "\n" for each in others))
    for rates in ("200000", RATES):
        result = penstock("bench", "paper", "--figures", "5", "--rates", rates, "--beside", str(done), "--json",
                          "--markdown", str(page))  # fmt: skip
        assert result.exit_code == 0
        done.write_text(done.read_text() + result.stdout)
    lines = [json.loads(line) for line in done.read_text().splitlines()[len(others) :]]
    assert [[point["offered"] for point in line["points"]] for line in lines] == [[200_000.0], [25_000.0]]
    assert f"word-count {first} at 200,000;" in page.read_text()
    assert f"| 5 | word-count | {first} | 60,000 | 25,000 | 300 ms |" in page.read_text()
    page.unlink()
    penstock("bench", "paper", "--figures", "5", "--rates", RATES, "--beside", str(done), "--markdown", str(page))
    assert f"of earlier runs: word-count {first};" in page.read_text(), "all of it was there already"
