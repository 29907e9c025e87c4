"""The `penstock` command."""

from __future__ import annotations

import logging
import sys
import warnings
from typing import Annotated

import typer

from penstock import __version__
from penstock.cli.backup import backup
from penstock.cli.bench import app as bench
from penstock.cli.chaos import chaos
from penstock.cli.checkpoint import checkpoint
from penstock.cli.console_command import TopologyCommand
from penstock.cli.convert import convert
from penstock.cli.crash import crash
from penstock.cli.dead_letters import dead_letters
from penstock.cli.epochs import epochs
from penstock.cli.freeze import freeze, unfreeze
from penstock.cli.init import init
from penstock.cli.interval import interval
from penstock.cli.listing import list_kinds
from penstock.cli.plan import plan
from penstock.cli.rescale import rescale
from penstock.cli.restart import restart
from penstock.cli.restore import restore
from penstock.cli.run import run
from penstock.cli.schema import schema
from penstock.cli.screen import fail
from penstock.cli.script import script
from penstock.cli.state import state
from penstock.cli.status import status
from penstock.cli.stop import kill, stop
from penstock.cli.stopping import INTERRUPTED
from penstock.cli.submit import submit
from penstock.cli.test import test
from penstock.cli.token import app as token
from penstock.cli.topologies import events, list_topologies, logs, remove, start
from penstock.cli.up import master, supervisor, up
from penstock.cli.validate import validate
from penstock.errors import PenstockError, TopologyError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Write a stream topology in one file, check it, see it, and run it on Spark.\n\n"
    "New here? `penstock init demo && cd demo && penstock run`",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)

app.command()(run)
app.command()(validate)
app.command()(plan)
app.command()(test)
app.command(cls=TopologyCommand)(status)
app.command(cls=TopologyCommand)(stop)
app.command(cls=TopologyCommand)(kill)
app.command(cls=TopologyCommand)(restart)
app.command(cls=TopologyCommand)(freeze)
app.command(cls=TopologyCommand)(unfreeze)
app.command(cls=TopologyCommand)(interval)
app.command(cls=TopologyCommand)(crash)
app.command(cls=TopologyCommand)(script)
app.command()(chaos)
app.add_typer(bench, name="bench")
app.command()(epochs)
app.command("dead-letters", cls=TopologyCommand)(dead_letters)
app.command(cls=TopologyCommand)(checkpoint)
app.command()(backup)
app.command(cls=TopologyCommand)(restore)
app.command(cls=TopologyCommand)(rescale)
app.command(cls=TopologyCommand)(state)
app.command()(up)
app.command()(submit)
app.command("list")(list_topologies)
app.command()(events)
app.command()(logs)
app.command()(start)
app.command()(remove)
app.command()(master)
app.command()(supervisor)
app.add_typer(token, name="token")
app.command()(init)
app.command()(convert)
app.command("kinds")(list_kinds)
app.command()(schema)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"penstock {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Penstock: one file, one command, results you can trust."""


def main() -> None:
    """Run the command; a known error is told in its own words, with exit code 1 or 2."""
    # Spark's client tells the root logger of every connection it loses, in stack traces, and warns of a JVM that is
    # gone when it is to be stopped: we say it in words.
    logging.getLogger().addHandler(logging.NullHandler())
    warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark JVM", RuntimeWarning)
    try:
        app()
    except TopologyError as error:
        fail(str(error), 2)
    except PenstockError as error:
        fail(str(error), 1)
    except KeyboardInterrupt:
        fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output went away, as `| head` does: nothing is wrong.
        sys.stderr.close()
        raise SystemExit(0) from None
