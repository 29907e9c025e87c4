"""The user's own Python: its three shapes, and what is said when it goes wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock import OperatorError, TopologyError
from penstock.testing import Result, run_on
from penstock.topology.builder import Stream
from penstock.topology.model import Topology

TEXTS = [["a b"], [""], ["c"]]


def texts() -> Stream:
    return Topology("own-code").source("texts", rows=[], schema="text string")


def run_own(project: Any, code: str, name: str, rows: list[Any] = TEXTS, **options: Any) -> Result:
    project.write("own.py", code)
    options = {"emits": "word string, length int", **options}
    topology = texts().custom(f"own:{name}", name="own", **options).sink("out", memory=True)
    return run_on(topology.with_folder(project.folder), texts=rows)


# -- what it may look like ----------------------------------------------------------------------

SHAPES = '''
import pyarrow as pa
import pyarrow.compute as pc

from penstock import Bolt

def one_tuple(tup):
    return tup.text, len(tup.text)

def one_dict(tup):
    return {"length": len(tup["text"]), "word": tup[0]}

def a_list(tup):
    return [(word, len(word)) for word in tup.text.split()]

def a_generator(tup):
    for word in tup.text.split():
        yield word, len(word)

def a_list_of_dicts(tup):
    return [{"word": word, "length": len(word)} for word in tup.text.split()]

def none_for_some(tup):
    return (tup.text, 1) if tup.text else None

def a_scalar(tup):
    return len(tup.text)

def with_arguments(tup, prefix, times=1):
    return prefix * times + tup.text, times

def of_a_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    lengths = pc.utf8_length(batch["text"])
    return pa.RecordBatch.from_arrays([batch["text"], lengths], names=["word", "length"])

def of_a_batch_in_parts(batch: "pa.RecordBatch"):
    for start in range(batch.num_rows):
        yield pa.Table.from_batches([of_a_batch(batch.slice(start, 1))])

class Words(Bolt):
    def initialize(self, longer_than):
        self.longer_than = longer_than

    def process(self, tup):
        for word in tup.text.split():
            if len(word) > self.longer_than:
                self.emit(word, len(word))

class Counted:
    def words(self, fields):
        assert type(fields) is list
        return [[word, len(word)] for word in fields[0].split()]
'''

SPLIT = [("a", 1), ("b", 1), ("cd", 2)]
WHOLE = [("", 0), ("a b", 3), ("cd", 2)]
EXPECTED = {
    "one_tuple": WHOLE, "one_dict": WHOLE, "a_list": SPLIT, "a_generator": SPLIT, "a_list_of_dicts": SPLIT,
    "none_for_some": [("a b", 1), ("cd", 1)], "of_a_batch": WHOLE, "of_a_batch_in_parts": WHOLE, "Counted.words": SPLIT,
    "a_scalar": [(0,), (2,), (3,)],
    "with_arguments": [("--", 2), ("--a b", 2), ("--cd", 2)],
    "Words": [("cd", 2)],
}
GIVEN = {"with_arguments": {"prefix": "-", "times": 2}, "Words": {"longer_than": 1}}


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Result:
    """One run of one topology with an operator for each shape."""
    folder = tmp_path_factory.mktemp("shapes")
    (folder / "own.py").write_text(SHAPES)
    topology = texts().topology
    for name in EXPECTED:
        emits = "length int" if name == "a_scalar" else "word string, length int"
        own = topology.stream("texts").custom(f"own:{name}", name=operator_of(name), emits=emits, with_=GIVEN.get(name))
        topology = own.sink(operator_of(name), memory=True)
    return run_on(topology.with_folder(folder), spark=spark, texts=[["a b"], [""], ["cd"]])


def operator_of(name: str) -> str:
    return f"op_{name}".replace(".", "_").lower()


@pytest.mark.parametrize("name", EXPECTED)
def test_code_of_every_shape_gives_its_tuples(shapes: Result, name: str) -> None:
    assert sorted(tuple(row.values()) for row in shapes[operator_of(name)]) == EXPECTED[name]


def test_a_bolt_emits_different_columns_on_different_ports(project: Any) -> None:
    project.write("own.py", """
        from penstock import Bolt

        class Sort(Bolt):
            def process(self, tup):
                if tup.text.isdigit():
                    self.emit(int(tup.text), port="numbers")
                else:
                    self.emit({"length": len(tup.text), "word": tup.text}, port="words")
        """)
    topology = project.topology("""
        topology: own-code
        sources: {texts: {rows: [], schema: "text string"}}
        operators:
          sort: {from: texts, custom: "own:Sort", emits: {words: "word string, length int", numbers: "number bigint"}}
        sinks:
          words: {from: sort.words, memory: true}
          numbers: {from: sort.numbers, memory: true}
        """)
    result = run_on(topology, texts=[["12"], ["ab"], ["7"]])
    assert result["words"] == [{"word": "ab", "length": 2}]
    assert result.same("numbers", [{"number": 12}, {"number": 7}])


def test_columns_of_any_type_are_kept_beside_what_code_emits(project: Any) -> None:
    project.write("own.py", """
        def words_of(text):
            return text.split()
        """)
    topology = project.topology("""
        topology: own-code
        sources: {texts: {rows: [], schema: "at timestamp, tags array<string>, price decimal(9,2), text string"}}
        operators:
          both: {from: texts, select: ["*", "named_struct('the text', text, 'a-b', array(price)) as odd"]}
          words: {from: both, custom: "own:words_of", keep: [Price, at, tags, odd], emits: "word string"}
        sinks:
          out: {from: words, memory: true}
        """)
    texts = [["2026-03-01T08:00:00Z", ["x", "y"], "1.50", "a b"], ["2026-03-01T09:00:00Z", None, "2.25", "c"],
             [None, [], None, ""]]
    result = run_on(topology, spark=project.spark, texts=texts)
    found = result["out"]
    rows = [(float(row["price"]), str(row["at"])[11:13], row.get("tags"), row["word"]) for row in found]
    assert sorted(rows, key=lambda row: row[-1]) == [
        (1.5, "08", ["x", "y"], "a"), (1.5, "08", ["x", "y"], "b"), (2.25, "09", None, "c")
    ]  # fmt: skip
    assert list(found[0])[:4] == ["price", "at", "tags", "odd"]
    assert sorted(row["odd"]["the text"] for row in found) == ["a b", "a b", "c"]


@pytest.mark.parametrize("sinks", [1, 2])
def test_numbers_that_are_kept_are_in_the_file_of_the_only_sink_or_of_each(project: Any, sinks: int) -> None:
    project.write("own.py", """
        def twice(amount):
            return amount * 2
        """)
    numbers = Topology("own-code").source("n", generator={"id": "sequence", "amount": "constant(3)"}, count=5)
    doubled = numbers.custom("own:twice", name="own", keep="id", emits="twice bigint")
    topology = doubled.sink("out", file="out.csv", header=False)
    if sinks == 2:
        topology = topology.stream("own").sink("other", file="other.csv", header=False)
    project.run(topology.with_folder(project.folder))
    for name in ("out.csv", "other.csv")[:sinks]:
        assert sorted((project.folder / name).read_text().split()) == [f"{number},6" for number in range(5)]


def test_code_finds_its_own_modules_and_files_beside_the_topology(project: Any) -> None:
    project.write("stopwords.txt", "a\n")
    project.write("own_words.py", "from pathlib import Path\nSTOP = Path('stopwords.txt').read_text().split()\n")
    code = """
        from own_words import STOP

        def keep(tup):
            return [(word, 0) for word in tup.text.split() if word not in STOP]
        """
    assert [row["word"] for row in run_own(project, code, "keep", [["a b"]])["out"]] == ["b"]


def test_what_code_prints_stays_off_standard_output(project: Any, capfd: pytest.CaptureFixture[str]) -> None:
    code = """
        import os

        print("while it is imported")

        def speak(tup):
            print("while it runs")
            os.write(1, b"past Python")
            return tup.text, 0
        """
    capfd.readouterr()
    assert len(run_own(project, code, "speak")["out"]) == 3
    assert capfd.readouterr().out == ""


# -- what is said when it goes wrong ------------------------------------------------------------

WRONG = '''import json
import sys
import time

from penstock import Bolt

def raises(tup):
    return json.loads(tup.text)

def exits(tup):
    sys.exit(3)

def hangs(tup):
    time.sleep(100)

def hangs_in_except(tup):
    try:
        time.sleep(100)
    except Exception:
        return None

def too_few(tup):
    return (tup.text,)

def unknown_key(tup):
    return {"word": tup.text, "lenght": 1}

def wrong_type(tup):
    return tup.text, "three"

def too_large(tup):
    return tup.text, 2 ** 40

class UnknownPort(Bolt):
    def process(self, tup):
        self.emit(tup.text, 1, port="sideways")

class RaisesAtStart(Bolt):
    def initialize(self):
        raise RuntimeError("no licence")

class ExitsAtStart(Bolt):
    def initialize(self):
        sys.exit("no licence")

class NoProcess(Bolt):
    pass
'''


def line_of(text: str) -> int:
    return 1 + next(at for at, line in enumerate(WRONG.splitlines()) if text in line)


def failure(project: Any, name: str, **options: Any) -> str:
    with pytest.raises(OperatorError) as caught:
        run_own(project, WRONG, name, [["x y"]], **options)
    message = str(caught.value)
    assert "operator 'own'" in message
    assert f"own:{name}" in message
    return message


@pytest.mark.parametrize(("name", "said", "line"), [
    ("raises", "JSONDecodeError", "json.loads"),
    ("exits", "sys.exit(3)", "sys.exit(3)"),
    ("UnknownPort", "no output port 'sideways'", "port=\"sideways\""),
])
def test_an_error_names_the_operator_the_tuple_and_the_users_own_line(
    project: Any, name: str, said: str, line: str
) -> None:
    message = failure(project, name)
    assert said in message
    assert "text='x y'" in message
    assert f"{project.folder / 'own.py'}:{line_of(line)}" in message
    assert line in message


@pytest.mark.parametrize("name", ["hangs", "hangs_in_except"])
def test_code_that_hangs_is_ended_and_named(project: Any, name: str) -> None:
    message = failure(project, name, timeout=0.5)
    assert "0.5 seconds" in message
    assert "text='x y'" in message
    assert f"{project.folder / 'own.py'}:" in message
    assert "timeout" in message


@pytest.mark.parametrize(("name", "said"), [
    ("too_few", "1 values for 2 columns (word, length)"),
    ("unknown_key", "no length and unknown lenght"),
    ("wrong_type", "column 'length' is int and 'three' is str"),
    ("too_large", "column 'length' is int and 1099511627776"),
])
def test_a_tuple_of_the_wrong_shape_is_shown_with_what_was_expected(project: Any, name: str, said: str) -> None:
    message = failure(project, name)
    assert said in message
    assert "x y" in message


@pytest.mark.parametrize(("name", "said"), [("RaisesAtStart", "RuntimeError: no licence"),
                                            ("ExitsAtStart", "sys.exit('no licence')")])
def test_a_bolt_that_cannot_be_initialised_says_why(project: Any, name: str, said: str) -> None:
    message = failure(project, name)
    assert said in message
    assert f"{project.folder / 'own.py'}:" in message


def test_a_bolt_without_process_is_told_what_it_lacks(project: Any) -> None:
    assert "NoProcess has no process(self, tup)" in failure(project, "NoProcess")


@pytest.mark.parametrize(("body", "said"), [
    ("return batch.select(['text'])", "no column word, length"),
    ("return 7", "returned int"),
    ("return pa.RecordBatch.from_pydict({'word': ['a'], 'length': ['x']})", "emits says: word string, length int"),
    ("return batch.column('nothing')", "own.py:4"),
])
def test_a_batch_of_the_wrong_shape_is_refused(project: Any, body: str, said: str) -> None:
    code = f"import pyarrow as pa\n\ndef batches(batch: pa.RecordBatch):\n    {body}\n"
    with pytest.raises(OperatorError) as caught:
        run_own(project, code, "batches")
    assert "operator 'own'" in str(caught.value)
    assert said in str(caught.value)


def test_a_module_that_fails_on_the_worker_says_where(project: Any) -> None:
    code = """
        LICENCE = None

        if LICENCE is None:
            raise ImportError("the licence server is away")

        def words(tup):
            return tup.text, 0
        """
    with pytest.raises((OperatorError, TopologyError)) as caught:
        run_own(project, code, "words")
    assert "operator 'own'" in str(caught.value)
    assert "own.py:4" in str(caught.value)
    assert "the licence server is away" in str(caught.value)


def test_the_session_works_on_after_code_went_wrong(project: Any) -> None:
    failure(project, "exits")
    project.write("fine.py", "def fine(tup):\n    return tup.text, 1\n")
    topology = texts().custom("fine:fine", emits="word string, length int").sink("out", memory=True)
    result = run_on(replace(topology, folder=project.folder), texts=[["x"]])
    assert result["out"] == [{"word": "x", "length": 1}]
