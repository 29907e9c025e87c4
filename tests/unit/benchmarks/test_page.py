"""docs/benchmarks.md is made of sections that tools write: every table is in one, and every tool finds its own."""

from __future__ import annotations

import re
from pathlib import Path

import against_spark
import peers
import pytest
import state_growth

from penstock.cli import bench, bench_console, bench_failover, bench_paper, bench_scaling, bench_startup
from penstock.cli.bench_page import Section, with_section

PAGE = (Path(__file__).parents[3] / "docs" / "benchmarks.md").read_text(encoding="utf-8")
SECTIONS = [
    *(tool.SECTION for tool in (bench, bench_console, bench_failover, bench_paper, bench_scaling, bench_startup)),
    peers.SECTION, peers.RECOVERY_SECTION, state_growth.SECTION,
    *(Section(job, heading) for job, heading in against_spark.HEADINGS.items()),
]  # fmt: skip


def test_every_job_of_make_bench_has_a_heading() -> None:
    assert against_spark.HEADINGS.keys() == against_spark.BENCHMARKS.keys()


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_a_tool_writes_under_its_heading(section: Section) -> None:
    written = with_section(PAGE, section, "what was found\n")
    assert len(re.findall(rf"^#+ {re.escape(section.heading)}$", written, re.MULTILINE)) == 1
    under = re.split(r"^#+ ", written.partition(f" {section.heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    assert f"<!-- bench {section.name} -->\nwhat was found\n<!-- end -->" in under
    assert with_section(written, section, "what was found\n") == written


def test_no_table_and_no_picture_is_outside_of_a_section() -> None:
    outside = re.sub(r"<!-- bench [^>]+ -->\n.*?<!-- end -->", "", PAGE, flags=re.DOTALL)
    assert [line for line in outside.splitlines() if line.startswith(("|", "!["))] == []
    names = re.findall(r"<!-- bench ([^>]+) -->", PAGE)
    assert set(names) <= {section.name for section in SECTIONS}
    assert len(set(names)) == len(names)


def test_contestants_with_other_figures_have_columns_of_their_own() -> None:
    table = against_spark.table_of("epoch-log", {"small": {"median_ms": 20.0}, "bounded": {"seconds": 3.0}})
    assert table.columns == ["epoch-log", "median ms", "seconds"]
    assert table.rows == [["small", "20.0", ""], ["bounded", "", "3.0"]]
    ratios = against_spark.table_of("x", {"penstock": {"seconds": 2.0}, "tuned": {"seconds": 3.0}})
    assert ratios.rows == [["penstock", "2.0"], ["tuned", "3.0 (×1.50)"]]
