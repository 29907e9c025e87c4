"""The user's own Python, found beside the topology file by `module:name`."""

from __future__ import annotations

import importlib
import inspect
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from penstock.errors import TopologyError
from penstock.topology.problems import suggest

_folders_used: set[Path] = set()
"""Where user code was loaded from so far in this process."""


def load_user_object(reference: str, folder: Path) -> Any:
    """What `module:name` or `module:Class.method` stands for, looked for in `folder` first.

    `sys.path` is afterwards as it was. A module of the same name that came from another topology's
    folder is forgotten first, so two topologies may each have their own `reach.py`. Raises
    TopologyError, whatever the module does at import short of Ctrl-C.
    """
    module_name, colon, attribute = reference.partition(":")
    names = attribute.split(".")
    if not colon or not all(part.isidentifier() for part in (*module_name.split("."), *names)):
        raise TopologyError(f"'{reference}' is not 'module:name'; write for example 'reach:followers_of' "
                            "for the function followers_of in reach.py")
    found: Any = _load_module(module_name, folder.absolute())
    owner = f"module '{module_name}'"
    for name in names:
        if not hasattr(found, name):
            hint = suggest(name, (known for known in dir(found) if not known.startswith("_")))
            raise TopologyError(f"{owner} has no '{name}'{f': {hint}' if hint else ''}")
        found = getattr(found, name)
        owner = f"'{module_name}:{name}'"
    return found


def _load_module(name: str, folder: Path) -> ModuleType:
    top = name.partition(".")[0]
    _refuse_a_name_that_is_taken(top, folder)
    _forget_modules_of_other_folders(top, folder)
    _folders_used.add(folder)
    try:
        with importable_from(folder):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _broken_import(name, folder, error) from error
        hint = suggest(name, (path.stem for path in folder.glob("*.py"))) or f"it would be {top}.py there"
        raise TopologyError(f"no module '{name}' in {folder}: {hint}") from error
    except (Exception, SystemExit) as error:
        raise _broken_import(name, folder, error) from error


@contextmanager
def importable_from(folder: Path) -> Iterator[None]:
    """Inside the block, imports look into `folder` first."""
    before = list(sys.path)
    sys.path.insert(0, str(folder))
    # A module may just have been written there. `importlib.invalidate_caches` would also read every zip file
    # on the path again, in a Spark worker Spark's own, for a fifth of a second.
    sys.path_importer_cache.pop(str(folder), None)
    try:
        yield
    finally:
        sys.path[:] = before


def _broken_import(name: str, folder: Path, error: BaseException) -> TopologyError:
    where = _user_line(folder, error)
    said = f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"
    if isinstance(error, SystemExit):
        said = "it calls sys.exit; put what should not run at import under `if __name__ == \"__main__\":`"
    return TopologyError(f"module '{name}' cannot be imported{f' ({where})' if where else ''}: {said}")


def _user_line(folder: Path, error: BaseException) -> str:
    """The last line of the user's own code that the error passed through, as `file:line`."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_within(folder, error.filename)}:{error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if Path(frame.filename).is_relative_to(folder)]
    return f"{_within(folder, frames[-1].filename)}:{frames[-1].lineno}" if frames else ""


def _within(folder: Path, file: str) -> str:
    return str(Path(file).relative_to(folder)) if Path(file).is_relative_to(folder) else file


def _refuse_a_name_that_is_taken(top: str, folder: Path) -> None:
    """Loading the user's `json.py` as `json` would give it to every library in the process."""
    if not _is_in(top, folder):
        return
    loaded = sys.modules.get(top)
    installed = loaded is not None and _is_installed(loaded) and not _comes_from(loaded, top, folder)
    if top in sys.stdlib_module_names or installed:
        raise TopologyError(f"module '{top}' in {folder} has the name of a Python library: rename {top}.py")


def _forget_modules_of_other_folders(top: str, folder: Path) -> None:
    """Drop `top`, and whatever else this folder has a file for, if loaded from an earlier folder."""
    foreign = set()
    for name in {name.partition(".")[0] for name in sys.modules}:
        module = sys.modules.get(name)
        clashes = name == top and (_is_in(top, folder) or _is_user_code(module))
        clashes = clashes or (_is_in(name, folder) and _is_user_code(module))
        if clashes and not _comes_from(module, name, folder):
            foreign.add(name)
    for name in list(sys.modules):
        if name.partition(".")[0] in foreign:
            del sys.modules[name]


def _is_in(top: str, folder: Path) -> bool:
    return (folder / f"{top}.py").is_file() or (folder / top / "__init__.py").is_file()


def _locations(module: ModuleType | None) -> list[Path]:
    file = getattr(module, "__file__", None)
    return [Path(file)] if file else [Path(path) for path in getattr(module, "__path__", ())]


def _comes_from(module: ModuleType | None, top: str, folder: Path) -> bool:
    expected = [place / tail for place in (folder, folder.resolve())
                for tail in (f"{top}.py", f"{top}/__init__.py", top)]
    return any(path in expected for path in _locations(module))


def _is_user_code(module: ModuleType | None) -> bool:
    return any(path.is_relative_to(folder) for path in _locations(module) for folder in _folders_used
               ) and not _is_installed(module)


def _is_installed(module: ModuleType | None) -> bool:
    libraries = {Path(sysconfig.get_path(kind)) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    own = Path(__file__).parents[1]
    return any(path.is_relative_to(place) for path in _locations(module) for place in (*libraries, own))


def takes_batches(function: Callable[..., Any]) -> bool:
    """Whether a function asks for whole Arrow batches: its first parameter is annotated so."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    annotation = parameters[0].annotation if parameters else None
    name = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return name.split(".")[-1].rstrip("'\"") == "RecordBatch"
