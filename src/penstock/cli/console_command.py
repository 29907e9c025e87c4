"""A command for a topology, here or at a console: an option that means nothing there is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from penstock.cli.console_options import at_console
from penstock.cli.screen import fail

TAKEN: dict[str, frozenset[str]] = {
    "status": frozenset({"as_json"}),
    "stop": frozenset({"as_json"}),
    "kill": frozenset({"as_json"}),
    "restart": frozenset({"as_json"}),
    "freeze": frozenset({"replica", "operator"}),
    "unfreeze": frozenset({"replica", "operator"}),
    "interval": frozenset(),
    "crash": frozenset({"replica"}),
    "script": frozenset({"commands"}),
    "dead-letters": frozenset({"operator", "replay", "discard", "last", "as_json"}),
    "checkpoint": frozenset({"name", "listing", "delete", "as_json"}),
    # A console always replaces what the topology had.
    "restore": frozenset({"replacing", "fresh_sinks", "as_json"}),
    "rescale": frozenset({"as_json"}),
    "state": frozenset({"key", "limit", "as_json"}),
}
"""By command, what of it a console carries out; everything else is for a topology's file."""
OF_A_CONSOLE = frozenset({"at", "token", "authority"})
"""What says which console, and means nothing for a file."""


class TopologyCommand(TyperCommand):
    """A command that is given a topology's file, or the name of one at a console."""

    def invoke(self, ctx: Any) -> Any:
        file: Path | None = ctx.params["file"]
        name = at_console(file)
        if name is None:
            self._refuse_console(ctx, file)
        else:
            self._refuse_others(ctx, name)
        return super().invoke(ctx)

    def _refuse_console(self, ctx: Any, file: Path | None) -> None:
        for parameter in self._typed(ctx):
            if parameter.name in OF_A_CONSOLE:
                what = "no topology is named" if file is None else f"'{file}' is a file, or cannot be a name"
                fail(f"{parameter.opts[0]} is for a topology of a console, and {what}: leave it out, or give the "
                     "topology's name, where there is no file of that name", 2)  # fmt: skip

    def _refuse_others(self, ctx: Any, name: str) -> None:
        taken = TAKEN[str(self.name)] | OF_A_CONSOLE
        for parameter in self._typed(ctx):
            if parameter.name not in taken:
                fail(f"there is no file '{name}' here, and a console takes no {parameter.opts[0]} for {self.name}: "
                     "leave it out, or give the topology's file", 2)  # fmt: skip

    def _typed(self, ctx: Any) -> Iterator[Any]:
        """The options that stand in the command line; what the environment says is meant for many commands."""
        for parameter in self.params:
            source = ctx.get_parameter_source(parameter.name)
            if parameter.param_type_name == "option" and source is not None and source.name == "COMMANDLINE":
                yield parameter
