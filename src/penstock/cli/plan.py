"""`penstock plan`: the plan as text, as a picture, or as Spark sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.loading import File, Sets, load
from penstock.cli.screen import err, fail, out


def plan(
    file: File = None,
    sets: Sets = None,
    svg: Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Write a picture here.")] = None,
    spark: Annotated[bool, typer.Option("--spark", help="Show Spark's physical plan (starts Spark).")] = False,
) -> None:
    """Show what a topology will do: its operators, routes, state, and the rewrites applied."""
    from penstock.plan.graph import build_plan
    from penstock.plan.rewrites import rewrite
    from penstock.plan.svg import plan_svg
    from penstock.plan.text import plan_text

    topology = load(file, sets, quiet=True)
    if svg is not None:
        try:
            svg.write_text(plan_svg(topology), encoding="utf-8")
        except OSError as error:
            fail(f"{svg} cannot be written: {error.strerror}", 1)
        err.print(f"wrote {svg}")
    if spark:
        from penstock.runtime.explain import spark_plan

        with err.status("starting Spark"):
            text = spark_plan(topology)
        out.print(text, markup=False, soft_wrap=True)
    elif svg is None:
        out.print(plan_text(rewrite(build_plan(topology))), markup=False, soft_wrap=True)
