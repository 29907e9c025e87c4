from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import TopologyError
from penstock.topology.code import load_user_object


@pytest.fixture(autouse=True)
def forget_user_modules() -> Iterator[None]:
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder


def refusal(reference: str, folder: Path) -> str:
    with pytest.raises(TopologyError) as refused:
        load_user_object(reference, folder)
    return str(refused.value)


def test_a_function_is_found_beside_the_topology(tmp_path: Path) -> None:
    write(tmp_path, "reach.py", "def followers_of(tup): return tup + 1")
    assert load_user_object("reach:followers_of", tmp_path)(1) == 2


def test_a_method_of_a_class_is_found(tmp_path: Path) -> None:
    write(tmp_path, "mylib.py", "class QueryFollowers:\n    def getFollowers(self): return 7")
    method = load_user_object("mylib:QueryFollowers.getFollowers", tmp_path)
    assert method(None) == 7


def test_a_module_in_a_package_is_found(tmp_path: Path) -> None:
    write(tmp_path, "flows/__init__.py", "")
    write(tmp_path, "flows/reach.py", "value = 3")
    assert load_user_object("flows.reach:value", tmp_path) == 3


def test_installed_modules_are_found_too(tmp_path: Path) -> None:
    assert load_user_object("json:dumps", tmp_path) is json.dumps


def test_the_search_path_is_afterwards_as_it_was(tmp_path: Path) -> None:
    write(tmp_path, "reach.py", "import sys\nsys.path.append('/left/behind')\nvalue = 1")
    before = list(sys.path)
    load_user_object("reach:value", tmp_path)
    refusal("missing:value", tmp_path)
    assert sys.path == before


def test_two_topologies_may_have_a_module_of_the_same_name(tmp_path: Path) -> None:
    for number, folder in enumerate((tmp_path / "a", tmp_path / "b", tmp_path / "b/inner")):
        write(folder, "reach.py", "from tables import value")
        write(folder, "tables.py", f"value = {number}")
    folders = (tmp_path / "a", tmp_path / "b", tmp_path / "b/inner", tmp_path / "b", tmp_path / "a")
    assert [load_user_object("reach:value", folder) for folder in folders] == [0, 1, 2, 1, 0]


def test_a_module_of_another_topology_is_not_found_by_accident(tmp_path: Path) -> None:
    write(tmp_path / "a", "reach.py", "value = 1")
    load_user_object("reach:value", tmp_path / "a")
    (tmp_path / "b").mkdir()
    assert "no module 'reach'" in refusal("reach:value", tmp_path / "b")


def test_the_same_module_is_loaded_once(tmp_path: Path) -> None:
    write(tmp_path, "reach.py", "class Bolt: pass")
    first = load_user_object("reach:Bolt", tmp_path)
    assert load_user_object("reach:Bolt", tmp_path) is first


@pytest.mark.parametrize("reference", ["reach", "reach:", ":f", "reach:f()", "my-lib:f", "a:b:c", ""])
def test_what_is_not_a_reference_is_refused(tmp_path: Path, reference: str) -> None:
    assert refusal(reference, tmp_path).startswith(f"'{reference}' is not 'module:name'; write for example")


def test_a_missing_module_suggests_the_nearest_file(tmp_path: Path) -> None:
    write(tmp_path, "reach.py", "")
    assert refusal("raech:f", tmp_path) == f"no module 'raech' in {tmp_path}: did you mean 'reach'?"


def test_a_missing_module_says_where_it_would_be(tmp_path: Path) -> None:
    assert refusal("reach:f", tmp_path) == f"no module 'reach' in {tmp_path}: it would be reach.py there"


def test_a_missing_module_in_a_package_is_not_blamed_on_the_package(tmp_path: Path) -> None:
    write(tmp_path, "flows/__init__.py", "")
    assert refusal("flows.reach:f", tmp_path).startswith(f"no module 'flows.reach' in {tmp_path}")


def test_a_module_that_raises_is_reported_with_the_users_line(tmp_path: Path) -> None:
    write(tmp_path, "reach.py", "import tables\n")
    write(tmp_path, "tables.py", "import json\n\njson.loads('nonsense')\n")
    message = refusal("reach:f", tmp_path)
    assert message.startswith("module 'reach' cannot be imported (tables.py:3): JSONDecodeError: Expecting")


def test_a_syntax_error_is_reported_with_its_line(tmp_path: Path) -> None:
    write(tmp_path, "reach.py", "x = 1\ndef f(:\n")
    assert refusal("reach:f", tmp_path) == (
        "module 'reach' cannot be imported (reach.py:2): SyntaxError: invalid syntax")


def test_a_module_that_lacks_a_library_is_not_called_missing(tmp_path: Path) -> None:
    write(tmp_path, "reach.py", "\nimport no_such_library\n")
    assert refusal("reach:f", tmp_path) == (
        "module 'reach' cannot be imported (reach.py:2): "
        "ModuleNotFoundError: No module named 'no_such_library'")


def test_a_module_that_exits_does_not_end_the_program(tmp_path: Path) -> None:
    write(tmp_path, "reach.py", "import sys\nsys.exit(3)\n")
    assert "module 'reach' cannot be imported (reach.py:2): it calls sys.exit" in refusal("reach:f", tmp_path)


def test_a_mended_module_is_loaded_after_a_failure(tmp_path: Path) -> None:
    write(tmp_path, "reach.py", "raise ValueError('not yet')")
    refusal("reach:value", tmp_path)
    write(tmp_path, "reach.py", "value = 'mended'")
    assert load_user_object("reach:value", tmp_path) == "mended"


def test_a_missing_name_suggests_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, "reach.py", "def followers_of(): ...\nclass Bolt:\n    def process(self): ...")
    assert refusal("reach:folowers_of", tmp_path) == (
        "module 'reach' has no 'folowers_of': did you mean 'followers_of'?")
    assert refusal("reach:Bolt.proces", tmp_path) == "'reach:Bolt' has no 'proces': did you mean 'process'?"
    assert refusal("reach:zzz", tmp_path) == "module 'reach' has no 'zzz'"


@pytest.mark.parametrize("name", ["json", "pyarrow"])
def test_a_file_named_like_a_library_is_refused_and_the_library_stays(tmp_path: Path, name: str) -> None:
    __import__(name)
    library = sys.modules[name]
    write(tmp_path, f"{name}.py", "value = 1")
    assert f"has the name of a Python library: rename {name}.py" in refusal(f"{name}:value", tmp_path)
    assert sys.modules[name] is library
