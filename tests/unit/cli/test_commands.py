"""The commands that start no Spark, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from penstock import __version__
from penstock.cli.main import app

GOOD = """\
topology: pages
sources:
  visits: {file: visits.csv, schema: "user string, page string"}
operators:
  home: {from: visits, filter: "page = '/home'"}
  views: {from: home, count: user}
sinks:
  out: {from: views, file: out/views.jsonl}
"""


def penstock(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "topology.yaml").write_text(GOOD)
    (tmp_path / "visits.csv").write_text("ann,/home\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_good_topology_is_ok(project: Path) -> None:
    result = penstock("validate")
    assert result.exit_code == 0
    assert "ok pages: 1 source, 2 operators, 1 sink" in result.stdout


def test_cells_say_where_replicas_run_and_no_option_does(project: Path) -> None:
    cells = "replicas: 2\ncells: [\"spark://a:7077\", \"spark://b:7077\"]\n"
    (project / "topology.yaml").write_text(GOOD.replace("sources:", f"{cells}sources:"))
    result = penstock("run", "--master", "spark://c:7077")
    assert result.exit_code == 2
    assert "--master spark://c:7077: `cells` of topology 'pages' say where each replica runs" in result.stderr


def test_every_problem_is_told_with_its_line(project: Path) -> None:
    (project / "topology.yaml").write_text(GOOD.replace("from: visits", "from: visit").replace("count:", "cuont:"))
    result = penstock("validate")
    assert result.exit_code == 2
    assert "topology.yaml:5: operator 'home': no stream 'visit': did you mean 'visits'?" in result.stderr
    assert "topology.yaml:6:" in result.stderr


def test_options_that_only_a_connector_understands_are_checked_too(project: Path) -> None:
    wrong = GOOD.replace("schema:", "delimiter: ab, schema:").replace("file: out/views.jsonl", "sql: nowhere, table: t")
    (project / "topology.yaml").write_text(wrong)
    result = penstock("validate")
    assert result.exit_code == 2
    assert "topology.yaml:3: source 'visits': delimiter 'ab' is not one character" in result.stderr
    assert "topology.yaml:8: sink 'out': that is not the address of a database" in result.stderr


def test_problems_as_json_are_one_object_a_line(project: Path) -> None:
    (project / "topology.yaml").write_text(GOOD.replace("from: visits", "from: visit"))
    result = penstock("validate", "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout.splitlines()[0])["line"] == 5


def test_a_value_can_be_set_from_the_command_line(project: Path) -> None:
    assert penstock("validate", "--set", "operators.home.filter=page is null").exit_code == 0
    result = penstock("validate", "--set", "operators.home.filter=pge is null")
    assert result.exit_code == 2
    assert "no column 'pge': did you mean 'page'?" in result.stderr


def test_values_may_come_through_the_environment(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_SETS", '["operators.home.filter=pge is null"]')
    assert "pge" in penstock("validate").stderr
    assert penstock("validate", "--set", "operators.home.filter=page is null").exit_code == 0
    for wrong in ("epoch.max_tuples=1", '{"a": 1}', "[1]"):
        monkeypatch.setenv("PENSTOCK_SETS", wrong)
        result = penstock("validate")
        assert (result.exit_code, "PENSTOCK_SETS in the environment is no JSON list" in result.stderr) == (2, True)


def test_a_set_without_a_value_is_refused(project: Path) -> None:
    result = penstock("validate", "--set", "delivery")
    assert result.exit_code == 2
    assert "write KEY=VALUE" in result.stderr


def test_a_folder_without_a_topology_says_how_to_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = penstock("validate")
    assert result.exit_code == 2
    assert "penstock init demo" in result.stderr


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = penstock("validate", str(tmp_path / "none.yaml"))
    assert result.exit_code == 2
    assert "none.yaml: no such file" in result.stderr


def test_the_plan_is_shown_as_text_and_as_a_picture(project: Path) -> None:
    assert "views" in penstock("plan").stdout
    assert penstock("plan", "--svg", "plan.svg").exit_code == 0
    assert ElementTree.parse(project / "plan.svg").getroot().tag.endswith("svg")


def test_a_picture_that_cannot_be_written_is_an_error(project: Path) -> None:
    result = penstock("plan", "--svg", "missing/plan.svg")
    assert result.exit_code == 1
    assert "missing/plan.svg cannot be written" in result.stderr


def test_a_dadstorm_file_becomes_yaml(tmp_path: Path) -> None:
    (tmp_path / "in.dat").write_text("1, ann\n")
    (tmp_path / "small.config").write_text(
        "OP1 input_ops in.dat rep_fact 1 routing random address tcp://a:1/op operator_spec UNIQ 2\n"
    )
    result = penstock("convert", str(tmp_path / "small.config"))
    assert result.exit_code == 0
    assert "uniq: f2" in result.stdout


def test_every_kind_is_listed_and_one_can_be_asked_for(project: Path) -> None:
    everything = penstock("kinds").stdout
    for name in ("file", "generator", "spout", "filter", "custom", "console", "memory"):
        assert name in everything
    one = penstock("kinds", "explode").stdout
    assert "explode" in one
    assert "generator" not in one
    assert penstock("kinds", "exploed").exit_code == 2
    assert {kind["role"] for kind in json.loads(penstock("kinds", "--json").stdout)} == {"source", "operator", "sink"}


def test_the_schema_is_json(project: Path) -> None:
    assert json.loads(penstock("schema").stdout)["type"] == "object"


def test_init_makes_a_project_that_is_valid_and_never_overwrites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert penstock("init", "demo").exit_code == 0
    assert penstock("validate", "demo").exit_code == 0
    again = penstock("init", "demo")
    assert again.exit_code == 2
    assert "exists and is not an empty folder" in again.stderr


def test_a_topology_in_python_is_read(tmp_path: Path) -> None:
    (tmp_path / "topology.py").write_text(
        "from penstock import Topology\n"
        "topology = Topology('t').source('s', file='a.txt').sink('out', console=True)\n"
    )
    assert penstock("validate", str(tmp_path)).exit_code == 0
    (tmp_path / "topology.py").write_text("x = 1 / 0\n")
    result = penstock("validate", str(tmp_path))
    assert result.exit_code == 2
    assert "topology.py:1: ZeroDivisionError" in result.stderr


def test_the_version_is_told() -> None:
    assert penstock("--version").stdout.strip() == f"penstock {__version__}"
