from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.topology.catalogue import Catalogue
from penstock.topology.model import (
    Case,
    Command,
    Count,
    Custom,
    Delivery,
    Dup,
    Explode,
    Operator,
    Route,
    RouteKind,
    Select,
    StreamRef,
    Union,
    Uniq,
)
from penstock.topology.schema import parse_schema
from penstock.topology.yaml_reader import read_topology

SOURCE = "topology: t\nsources:\n  a: {file: a.csv}\n"


def operators(*lines: str) -> str:
    return SOURCE + "operators:\n" + "".join(f"  {line}\n" for line in lines)


def test_the_example_is_read_whole(read: Any, url_reach: str) -> None:
    topology, problems = read(url_reach)
    assert problems == []
    assert topology.name == "url-reach"
    assert topology.delivery is Delivery.EXACTLY_ONCE
    assert topology.sources[0].schema == parse_schema("id int, user string, url string")
    assert topology.sources[0].options == {"file": "tweets.csv"}
    mentions, followers, unique, reach = topology.operators
    assert mentions.condition == "url = 'www.tecnico.ulisboa.pt'"
    assert followers == Custom(
        "followers",
        (StreamRef("mentions"),),
        code="reach:followers_of",
        emits=(("", parse_schema("follower string")),),
        parallelism=2,
        route=Route(RouteKind.SHUFFLE),
    )
    assert unique == Uniq("unique", (StreamRef("followers"),), keys=("follower",))
    assert reach == Count("reach", (StreamRef("unique"),), keys=())
    assert (topology.sinks[0].input, topology.sinks[0].kind) == (StreamRef("reach"), "file")


def test_every_node_knows_its_line(read: Any, url_reach: str) -> None:
    topology, _ = read(url_reach)
    assert [str(node.where) for node in (*topology.sources, *topology.operators, *topology.sinks)] == [
        f"t.yaml:{line}" for line in (4, 6, 7, 8, 9, 11)
    ]


def test_every_operator_is_read_with_its_options(read: Any) -> None:
    topology, problems = read(
        operators(
            "s: {from: a, select: [x, y as z]}",
            "e: {from: s, explode: \"split(z, ',')\", as: word}",
            "d: {from: e, dup: }",
            'c: {from: d, count: "x, word", emit: each, route: hash(word)}',
            "u: {from: [d, p.good], union: }",
            "p: {from: a, custom: m:f, emits: {good: x int, bad: why string}, with: {n: [1, 2]}, timeout: 5}",
        )
    )
    assert problems == []
    assert topology.operators[:5] == (
        Select("s", (StreamRef("a"),), columns=("x", "y as z")),
        Explode("e", (StreamRef("s"),), expression="split(z, ',')", alias="word"),
        Dup("d", (StreamRef("e"),)),
        Count(
            "c", (StreamRef("d"),), keys=("x", "word"), emit="each", route=Route(RouteKind.HASH, ("word",))
        ),
        Union("u", (StreamRef("d"), StreamRef("p", "good"))),
    )
    custom = topology.operators[5]
    assert (custom.output_ports(), custom.arguments, custom.timeout) == (("good", "bad"), {"n": [1, 2]}, 5.0)


def test_settings_tests_and_commands_are_read(read: Any) -> None:
    topology, problems = read(
        SOURCE
        + """\
delivery: at-least-once
epoch: {interval: 500ms, max_tuples: 10}
dead_letters: bad.jsonl
acking: true
ack_timeout: 1m
logging: full
commands: [Status, Freeze OP2 1]
tests:
  - {name: one, given: {a: [{x: 1, at: 2024-01-01}]}, expect: {out: []}}
  - {name: two, given: {a: }}
"""
    )
    assert problems == []
    assert (topology.epoch.interval, topology.epoch.max_tuples) == (0.5, 10)
    assert (topology.delivery, topology.dead_letters, topology.logging) == (
        Delivery.AT_LEAST_ONCE,
        "bad.jsonl",
        "full",
    )
    assert (topology.acking, topology.ack_timeout) == (True, 60.0)
    assert topology.commands == (Command("Status"), Command("Freeze", ("OP2", "1")))
    assert topology.tests == (
        Case("one", {"a": ({"x": 1, "at": "2024-01-01"},)}, {"out": ()}),
        Case("two", {"a": ()}, {}),
    )


def test_tests_may_be_a_mapping_from_name_to_case(read: Any) -> None:
    topology, problems = read(SOURCE + "tests:\n  one: {given: {a: [{x: 1}]}}\n")
    assert problems == []
    assert topology.tests == (Case("one", {"a": ({"x": 1},)}, {}),)


def test_a_users_own_connector_takes_any_options(read: Any) -> None:
    topology, problems = read(
        "topology: t\nsources:\n  a: {custom: my:Source, schema: x int, file: f, n: [1]}\n"
    )
    assert problems == []
    assert topology.sources[0].kind == "custom"
    assert topology.sources[0].options == {"custom": "my:Source", "file": "f", "n": [1]}


def test_connector_options_are_kept_as_given(read: Any) -> None:
    topology, problems = read('topology: t\nsources:\n  a: {file: f, poll: 2s, delimiter: "\\t"}\n')
    assert problems == []
    assert topology.sources[0].options == {"file": "f", "poll": "2s", "delimiter": "\t"}


def test_a_kind_without_argument_takes_nothing_or_true(read: Any) -> None:
    topology, problems = read(
        SOURCE + "sinks:\n  x: {from: a, console: }\n  y: {from: a, console: true}\n"
        "  z: {from: a, memory: true}\n"
    )
    assert problems == []
    assert [sink.options for sink in topology.sinks] == [
        {"console": None},
        {"console": None},
        {"memory": None},
    ]


def test_anchors_and_merges_work(read: Any) -> None:
    topology, problems = read(
        "topology: t\nsources:\n  a: &a {file: a.csv, format: csv}\n  b: {<<: *a, file: b.csv}\n"
    )
    assert problems == []
    assert topology.sources[1].options == {"file": "b.csv", "format": "csv"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "topology: two words\n",
            "t.yaml:1: topology: 'two words' cannot be a name: use letters, digits, - and _",
        ),
        ("sources:\n", "t.yaml:1: the topology has no name (begin with 'topology: NAME')"),
        ("topolgy: t\n", "t.yaml:1: unknown key 'topolgy' in the topology (did you mean 'topology'?)"),
        (
            "topology: t\ndelivery: exactly_once\n",
            "t.yaml:2: delivery: 'exactly_once' is not one of at-most-once, at-least-once, exactly-once: "
            "did you mean 'exactly-once'?",
        ),
        (
            "topology: t\nsources:\n  a: {file: x}\n  a: {file: y}\n",
            "t.yaml:4: 'a' appears twice in 'sources' (first in line 3)",
        ),
        ("topology: t\nsources: [a]\n", "t.yaml:2: 'sources' must be a mapping, with lines of 'name: value'"),
        (
            "topology: t\nsources:\n  a: tweets.csv\n",
            "t.yaml:3: source 'a' must be a mapping (write for example a: "
            '{file: tweets.csv, schema: "id int, user string"})',
        ),
        (
            "topology: t\nsources:\n  a b: {file: x}\n",
            "t.yaml:3: 'a b' cannot be a name: use letters, digits, - and _",
        ),
        (
            "topology: t\nsources:\n  a: {schema: x int}\n",
            "t.yaml:3: source 'a' has no kind (use one of file, generator, custom)",
        ),
        (
            "topology: t\nsources:\n  a: {fiel: x}\n",
            "t.yaml:3: no kind of source is called 'fiel' (did you mean 'file'?)",
        ),
        (
            "topology: t\nsources:\n  a: {file: x, generator: {}, rate: 1}\n",
            "t.yaml:3: source 'a' has several kinds: 'file' and 'generator' (keep one)",
        ),
        (
            "topology: t\nsources:\n  a: {file: x, fromat: csv}\n",
            "t.yaml:3: unknown key 'fromat' in source 'a' (did you mean 'format'?)",
        ),
        (
            "topology: t\nsources:\n  a: {file: x,\n      format: xml}\n",
            "t.yaml:4: format: 'xml' is not one of csv, json",
        ),
        (
            "topology: t\nsources:\n  a: {generator: {x: id}}\n",
            "t.yaml:3: source 'a' lacks 'rate' (Tuples a second.)",
        ),
        (
            "topology: t\nsources:\n  a: {generator: {x: id}, rate: -1}\n",
            "t.yaml:3: rate: -1 is too small: at least 0",
        ),
        (
            "topology: t\nsources:\n  a: {file: }\n",
            "t.yaml:3: file: no value is given; it takes: Where the file is.",
        ),
        ("topology: t\nsources:\n  a: {file: 7}\n", "t.yaml:3: file: 7 is not text; put it in quotes"),
        (
            "topology: t\nsources:\n  a: {file: x, on_malformed: ignore}\n",
            "t.yaml:3: on_malformed: 'ignore' is not one of fail, drop, dead-letter",
        ),
        (
            SOURCE + "sinks:\n  o: {file: x}\n",
            "t.yaml:5: sink 'o' does not say which stream it takes (add 'from: STREAM')",
        ),
        (SOURCE + "sinks:\n  o: {from: a, console: 5}\n", "t.yaml:5: console: it takes no value, but has 5"),
        (
            operators("f: {filter: x}"),
            "t.yaml:5: operator 'f' does not say which stream it takes (add 'from: STREAM')",
        ),
        (
            operators("f: {from: a, filter: }"),
            "t.yaml:5: filter: no value is given; it takes: A SQL condition over the columns.",
        ),
        (
            operators("f: {from: a, filter: x, emits: y int}"),
            "t.yaml:5: unknown key 'emits' in operator 'f' (it may have: filter, from, parallelism, route)",
        ),
        (
            operators("f: {from: a, cuont: }"),
            "t.yaml:5: no kind of operator is called 'cuont' (did you mean 'count'?)",
        ),
        (
            operators("f: {from: a, filter: x, parallelism: 0}"),
            "t.yaml:5: parallelism: 0 is too small: at least 1",
        ),
        (
            operators("f: {from: a, filter: x, route: hsah(x)}"),
            "t.yaml:5: route: unknown route 'hsah': did you mean 'hash'?",
        ),
        (
            "topology: t\nepoch: {max: 1}\n",
            "t.yaml:2: unknown key 'max' in 'epoch' (it may have: interval, max_tuples, tick)",
        ),
        ("topology: t\ntests: [{given: {}}]\n", "t.yaml:2: a test without a name (add 'name: …')"),
        (
            "topology: t\ntests: [{name: x, given: {a: [1]}}]\n",
            "t.yaml:2: a: [1] is not a list of rows; write for example [{id: 1, user: ann}]",
        ),
        (
            "topology: t\ntests: [{name: x, given: {}}, {name: x, given: {}}]\n",
            "t.yaml:2: two tests are called 'x'",
        ),
        (
            "topology: !!binary t\n",
            "t.yaml:1: the tag tag:yaml.org,2002:binary means nothing here (leave it out)",
        ),
        ("topology: t\ntests: [{name: x, given: &g {a: *g}}]\n", "t.yaml:2: an anchor that contains itself"),
        (
            "topology: t\nepoch: &e {<<: {<<: *e}}\n",
            "t.yaml:2: '<<' takes another mapping, for example '<<: *defaults'",
        ),
    ],
)
def test_a_mistake_is_reported_with_its_line(read: Any, text: str, problem: str) -> None:
    _, problems = read(text)
    assert problems == [problem]


@pytest.mark.parametrize(
    ("text", "start", "hint"),
    [
        ("topology: t\nsources:\n\ta: 1\n", "t.yaml:3: not valid YAML", "indent with blanks, not tabs"),
        ("topology: t\nsources: {a: {file: ${env:X}}}\n", "t.yaml:2: not valid YAML", "in quotes"),
        ("topology: a: b\n", "t.yaml:1: not valid YAML", "put text that contains ': ' in quotes"),
        ("topology: t\nx: [1\n", "t.yaml:3: not valid YAML", ""),
        ("topology: \x00\n", "t.yaml:1: a character that YAML does not allow", ""),
        ("", "t.yaml: not a topology", "topology: NAME"),
        ("- a\n", "t.yaml:1: not a topology", "topology: NAME"),
    ],
)
def test_text_that_is_no_tree_gives_one_problem_and_no_topology(
    read: Any, text: str, start: str, hint: str
) -> None:
    topology, problems = read(text)
    assert topology is None
    assert len(problems) == 1
    assert problems[0].startswith(start)
    assert hint in problems[0]


def test_all_problems_are_reported_in_the_order_of_their_lines(read: Any) -> None:
    _, problems = read(
        "sinks:\n  o: {from: a}\noperators:\n  f: {from: a, filter: x, route: up}\nsuorces: {}\n"
    )
    assert [problem.split(":")[1] for problem in problems] == ["1", "2", "4", "5"]


def test_what_could_not_be_read_keeps_its_name_and_streams(read: Any) -> None:
    topology, _ = read(
        "topology: t\nsources:\n  a: {fiel: x}\noperators:\n  f: {from: a, filter: [1]}\n"
        "sinks:\n  o: {from: f, fiel: x}\n"
    )
    assert topology.sources[0].kind == topology.sinks[0].kind == ""
    assert topology.operators == (Operator("f", (StreamRef("a"),)),)
    assert topology.sinks[0].input == StreamRef("f")


def test_the_environment_fits_the_type_of_its_option(read: Any) -> None:
    topology, problems = read(
        'topology: t\nsources:\n  a: {file: "${env:YEAR}", header: "${env:HEAD}", schema: x int}\n'
        'operators:\n  f: {from: a, custom: m:f, parallelism: "${env:N:-3}", with: {q: "${env:N:-3}"}}\n'
        "  g:\n    from: a\n    custom: m:f\n    with:\n      plain: ${env:N:-3}\n",
        {"YEAR": "2024", "HEAD": "true"},
    )
    assert problems == []
    assert topology.sources[0].options == {"file": "2024", "header": True}
    assert topology.operators[0].parallelism == 3
    assert topology.operators[0].arguments == {"q": "3"}
    assert topology.operators[1].arguments == {"plain": 3}


def test_an_unset_variable_is_reported_with_its_line(read: Any) -> None:
    _, problems = read('topology: t\nsources:\n  a: {file: "${env:NOPE}"}\n')
    assert problems == [
        "t.yaml:3: the environment variable NOPE is not set; set it, or give a default: ${env:NOPE:-…}"
    ]


def test_overrides_replace_and_add_values(read: Any, url_reach: str) -> None:
    topology, problems = read(
        url_reach,
        delivery="at-least-once",
        sources__tweets__file="2024",
        operators__followers__parallelism="4",
        operators__followers__with__n="7",
        epoch__max_tuples="10",
    )
    assert problems == []
    assert topology.delivery is Delivery.AT_LEAST_ONCE
    assert topology.sources[0].options == {"file": "2024"}
    assert topology.operators[1].parallelism == 4
    assert topology.operators[1].arguments == {"n": 7}
    assert topology.epoch.max_tuples == 10


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        (
            "deliverry",
            "--set deliverry: unknown key 'deliverry' in the topology (did you mean 'delivery'?)",
        ),
        (
            "sources__twets__file",
            "--set sources.twets.file: no 'twets' in 'sources' to set (did you mean 'tweets'?)",
        ),
        (
            "sources__tweets__fiel",
            "--set sources.tweets.fiel: unknown key 'fiel' in source 'tweets' (did you mean 'file'?)",
        ),
        (
            "sources__tweets",
            "--set sources.tweets: 'sources.tweets' is not one value (write sources.NAME.KEY=value)",
        ),
        ("delivery__x", "--set delivery.x: 'delivery' is a single value: it has nothing inside to set"),
        (
            "operators__reach__parallelism",
            "--set operators.reach.parallelism: parallelism: 'x' is not a whole number",
        ),
    ],
)
def test_an_override_that_does_not_fit_is_a_problem(
    read: Any, url_reach: str, path: str, problem: str
) -> None:
    _, problems = read(url_reach, **{path: "x"})
    assert problems == [problem]


def test_an_override_of_an_alias_leaves_the_others_alone(read: Any) -> None:
    topology, problems = read(
        "topology: t\nsources:\n  a: &a {file: a.csv}\n  b: *a\n", sources__b__file="b.csv"
    )
    assert problems == []
    assert [source.options["file"] for source in topology.sources] == ["a.csv", "b.csv"]


def test_a_file_that_cannot_be_read_is_a_problem(catalogue: Catalogue, tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"topology: t\n# caf\xe9\n")
    for name, message in (
        ("none.yaml", ": no such file"),
        (".", ": cannot be read: Is a directory"),
        ("latin.yaml", ":2: not UTF-8 text (save the file as UTF-8)"),
    ):
        topology, problems = read_topology(tmp_path / name, catalogue, {})
        assert topology is None
        assert [str(problem) for problem in problems] == [f"{tmp_path / name}{message}"]


def test_the_folder_of_the_file_is_where_its_paths_start(
    catalogue: Catalogue, tmp_path: Path, url_reach: str
) -> None:
    (tmp_path / "t.yaml").write_text(url_reach)
    topology, problems = read_topology(tmp_path / "t.yaml", catalogue, {})
    assert problems == []
    assert topology is not None
    assert topology.folder == tmp_path
