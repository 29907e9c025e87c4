from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from time import process_time

from penstock.topology.catalogue import REQUIRED, Catalogue, Kind, Option, operator_kinds
from penstock.topology.model import (
    Count,
    Custom,
    Dup,
    Explode,
    Filter,
    FrozenOptions,
    Location,
    Operator,
    Select,
    Sink,
    Source,
    StreamRef,
    Topology,
    Uniq,
)
from penstock.topology.schema import parse_schema
from penstock.validation import validate

CATALOGUE = Catalogue((
    *operator_kinds(),
    Kind("file", "source", "Read files.", Option("file", "path", "The file.", REQUIRED)),
    Kind("file", "sink", "Write files.", Option("file", "path", "The file.", REQUIRED)),
))


def at(line: int) -> Location:
    return Location("topology.yaml", line)


def reads(name: str) -> tuple[StreamRef, ...]:
    return (StreamRef(name),)


def tweets(schema: str = "id int, user string, url string") -> Source:
    return Source("tweets", "file", FrozenOptions(file="tweets.csv"), parse_schema(schema), where=at(4))


def out(name: str, read: str, line: int = 20) -> Sink:
    return Sink(name, StreamRef(read), "file", FrozenOptions(file=f"{name}.jsonl"), where=at(line))


def url_reach(folder: Path) -> Topology:
    (folder / "reach.py").write_text("def followers_of(tup):\n    return []\n")
    emits = (("", parse_schema("follower string")),)
    return Topology("url-reach", folder=folder, sources=(tweets(),), operators=(
        Filter("mentions", reads("tweets"), condition="url = 'www.tecnico.ulisboa.pt'"),
        Custom("followers", reads("mentions"), code="reach:followers_of", emits=emits, parallelism=2),
        Uniq("unique", reads("followers"), keys=("follower",)),
        Count("reach", reads("unique"))), sinks=(out("out", "reach"),))


def test_a_good_topology_has_no_problems(tmp_path: Path) -> None:
    assert validate(url_reach(tmp_path), CATALOGUE) == []


def test_eight_mistakes_are_eight_problems_in_the_order_of_their_lines(tmp_path: Path) -> None:
    (tmp_path / "eight.py").write_text("def no_tuple():\n    return []\n")
    topology = Topology("eight", folder=tmp_path, sources=(tweets(),), operators=(
        Filter("misspelt", reads("twets"), condition="usr = 'ann'", where=at(10)),
        Filter("unclosed", reads("tweets"), condition="(id = 1", where=at(11)),
        Filter("column", reads("tweets"), condition="usr = 'ann'", where=at(12)),
        Filter("types", reads("tweets"), condition="id > 'many'", where=at(13)),
        Custom("code", reads("tweets"), code="eight:no_tuple", emits=(("", parse_schema("x int")),),
               where=at(14)),
        Dup("settings", reads("tweets"), parallelism=0, where=at(15)),
        Dup("a", reads("b"), where=at(16)),
        Dup("b", reads("a"), where=at(17))),
        sinks=(out("out1", "misspelt"), out("out2", "unclosed"), out("out3", "column"), out("out4", "types"),
               out("out5", "code"), out("out6", "settings"), out("out7", "b"),
               Sink("out8", StreamRef("a"), "file", FrozenOptions(fill="x.jsonl"), where=at(28))))
    assert [str(problem) for problem in validate(topology, CATALOGUE)] == [
        "topology.yaml:10: operator 'misspelt': no stream 'twets': did you mean 'tweets'?",
        "topology.yaml:11: operator 'unclosed': '(id = 1' is not a SQL expression: "
        "')' is missing at character 7, after '1'",
        "topology.yaml:12: operator 'column': no column 'usr': did you mean 'user'?",
        "topology.yaml:13: operator 'types': id is int and cannot be compared with 'many' "
        "(compare it with a number)",
        "topology.yaml:14: operator 'code': 'eight:no_tuple' takes no argument, and is called with the tuple "
        "(add one)",
        "topology.yaml:15: operator 'settings': parallelism 0 is impossible (give at least 1)",
        "topology.yaml:16: a cycle: a → b → a (a stream cannot flow back to where it came from)",
        "topology.yaml:28: sink 'out8': file has no option 'fill': did you mean 'file'?"]


def test_one_mistake_at_the_top_is_not_repeated_below() -> None:
    topology = Topology("t", sources=(tweets(),), operators=(
        Select("words", reads("twets"), columns=("*", "split(url, '/') as parts")),
        Explode("parts", reads("words"), expression="parts", alias="part"),
        Filter("long", reads("parts"), condition="length(part) > 3 and id > 1"),
        Uniq("unique", reads("long"), keys=("part",)),
        Count("n", reads("unique"), keys=("part",))), sinks=(out("out", "n"),))
    assert [problem.message for problem in validate(topology, CATALOGUE)] == [
        "operator 'words': no stream 'twets': did you mean 'tweets'?"]


def test_fifty_operators_are_checked_in_half_a_second() -> None:
    operators: list[Operator] = []
    before = "tweets"
    for number in range(25):
        condition = f"id > {number} and user like 'a%{number}'"
        operators.append(Filter(f"f{number}", reads(before), condition=condition))
        operators.append(Select(f"s{number}", reads(f"f{number}"),
                                columns=(f"id + {number} as id", "upper(user) as user", "url")))
        before = f"s{number}"
    topology = Topology("t", sources=(tweets(),), operators=tuple(operators), sinks=(out("out", before),))
    start = process_time()
    assert validate(topology, CATALOGUE) == []
    assert process_time() - start < 0.5


def test_neither_spark_nor_sqlglot_is_imported_for_a_topology_without_sql() -> None:
    program = (
        "import sys\n"
        "from penstock.topology.catalogue import Catalogue\n"
        "from penstock.topology.model import Topology\n"
        "from penstock.validation import validate\n"
        "assert len(validate(Topology('t'), Catalogue(()))) == 2\n"
        "print([name for name in ('pyspark', 'sqlglot', 'py4j') if name in sys.modules])\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
