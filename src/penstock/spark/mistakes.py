"""What a user needs to find a mistake in their own code: the operator, their own line, the error, the tuple."""

from __future__ import annotations

import os
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.spark.emitted import Misfit
from penstock.topology.bolt import Fail
from penstock.topology.model import Custom

_PACKAGE = str(Path(__file__).parents[1]) + os.sep


def who(operator: Custom) -> str:
    """The operator, where it is written, and its code."""
    where = f" ({operator.where})" if operator.where.line else ""
    return f"operator '{operator.name}'{where}: {operator.code}"


def said(error: BaseException) -> str:
    """The error alone, on one line."""
    match error:
        case Fail() | Misfit():
            return str(error)
        case SystemExit():
            return f"sys.exit({error.code!r})"
        case _:
            return f"{type(error).__name__}: {error}"


@dataclass(frozen=True)
class Storyteller:
    """Tells of errors that one operator's code has raised."""

    operator: Custom
    folder: str

    def told(self, error: BaseException, tup: Any, method: str = "") -> str:
        """The whole story, in several lines; without a tuple when it is None."""
        match error:
            case SystemExit():
                what = f"called {said(error)}"
            case Fail():
                what = f"failed a tuple: {error}"
            case _:
                what = f"raised {said(error)}"
        tuple_line = "" if tup is None else f"\n  tuple: {tup!r}"
        return f"{who(self.operator)}{' in ' + method if method else ''} {what}{self.line(error)}{tuple_line}"

    def hung(self, error: BaseException, tup: Any, method: str = "finish") -> str:
        """The code did not come back from a tuple; None: from a method that is given none."""
        what = "a tuple" if tup is not None else f"`{method}`"
        tuple_line = "" if tup is None else f"  tuple: {tup!r}\n"
        return (
            f"{who(self.operator)} did not finish {what} within {self.operator.timeout:g} seconds{self.line(error)}\n"
            f"{tuple_line}"
            "  make it faster, or raise the operator's `timeout`"
        )

    def line(self, error: BaseException) -> str:
        """` at FILE:LINE` and what stands there; empty when none of the user's lines is known."""
        frame = self._own_frame(error)
        return "" if frame is None else f" at {frame.filename}:{frame.lineno}\n  {frame.line}"

    def place(self, error: BaseException) -> str:
        """`module.py:7`, as seen from the topology's folder; empty when none is known."""
        frame = self._own_frame(error)
        if frame is None:
            return ""
        file = Path(frame.filename)
        shown = file.relative_to(self.folder) if file.is_relative_to(self.folder) else file
        return f"{shown}:{frame.lineno}"

    def _own_frame(self, error: BaseException) -> traceback.FrameSummary | None:
        """The last line of the user's own code that the error passed through, rather than a library's."""
        frames = traceback.extract_tb(error.__traceback__)
        others = [frame for frame in frames if not frame.filename.startswith(_PACKAGE)]
        own = [frame for frame in others if Path(frame.filename).is_relative_to(self.folder)] or others
        return own[-1] if own else None
