"""Where tuples go: custom code tells which instance it is, and the rows show who received what."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.connectors.registry import catalogue
from penstock.testing import Result, run_on
from penstock.topology.loading import load_topology

INSTANCES = 3
ROWS = [[number, f"user {number % 10}"] for number in range(300)]

ROUTES = {
    "shuffle": ("shuffle", "random", "round_robin"),
    "hash": ("hash(user)", "fields(user)", "same_key(user)", "hashing(user)"),
    "all": ("all", "broadcast"),
    "global": ("global", "primary"),
}
"""Every route that moves tuples, under each of its names; `local` has a test of its own."""

WHERE = """
def where(tup, context):
    return tup.id, tup.user, context.instance
"""


def operator_of(route: str) -> str:
    return "by_" + route.partition("(")[0]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Result:
    """One run of one topology with an operator for each name of each route."""
    folder: Path = tmp_path_factory.mktemp("routes")
    (folder / "own.py").write_text(WHERE)
    written = [(operator_of(route), f"route: {route}, ") for names in ROUTES.values() for route in names]
    written.append(("unrouted", ""))
    operators = "".join(
        f'  {name}: {{from: numbers, custom: "own:where", emits: "id int, user string, instance int", '
        f"{route}parallelism: {INSTANCES}}}\n" for name, route in written)
    sinks = "".join(f"  {name}: {{from: {name}, memory: true}}\n" for name, _ in written)
    text = (f'topology: routes\nsources:\n  numbers: {{rows: [], schema: "id int, user string"}}\n'
            f"operators:\n{operators}sinks:\n{sinks}")
    (folder / "topology.yaml").write_text(text)
    topology, problems = load_topology(folder / "topology.yaml", catalogue())
    assert topology is not None, problems
    return run_on(topology, spark=spark, numbers=ROWS)


def instances(rows: list[dict[str, Any]]) -> Counter[int]:
    return Counter(row["instance"] for row in rows)


@pytest.mark.parametrize("route", [*ROUTES["shuffle"], "unrouted"])
def test_a_shuffle_gives_every_instance_about_as_much(result: Result, route: str) -> None:
    rows = result["unrouted" if route == "unrouted" else operator_of(route)]
    shares = instances(rows)
    assert set(shares) == set(range(INSTANCES))
    assert all(abs(share - len(ROWS) / INSTANCES) <= 3 for share in shares.values()), shares
    assert sorted(row["id"] for row in rows) == list(range(300))


@pytest.mark.parametrize("route", ROUTES["hash"])
def test_a_hash_gives_the_same_key_to_the_same_instance(result: Result, route: str) -> None:
    rows = result[operator_of(route)]
    homes: dict[str, set[int]] = {}
    for row in rows:
        homes.setdefault(row["user"], set()).add(row["instance"])
    assert len(homes) == 10
    assert all(len(home) == 1 for home in homes.values())
    assert 1 < len(instances(rows)) <= INSTANCES
    assert len(rows) == 300


@pytest.mark.parametrize("route", ROUTES["all"])
def test_all_gives_every_tuple_to_every_instance(result: Result, route: str) -> None:
    rows = result[operator_of(route)]
    assert instances(rows) == dict.fromkeys(range(INSTANCES), 300)
    assert len({(row["id"], row["instance"]) for row in rows}) == 300 * INSTANCES


@pytest.mark.parametrize("route", ROUTES["global"])
def test_global_gives_every_tuple_to_the_one_instance(result: Result, route: str) -> None:
    assert instances(result[operator_of(route)]) == {0: 300}


@pytest.mark.parametrize("route", ["local", "local_or_shuffle"])
def test_local_leaves_tuples_where_they_are(project: Any, route: str) -> None:
    project.write("own.py", WHERE)
    topology = project.topology(f"""
        topology: local-route
        sources:
          numbers: {{generator: {{id: sequence, user: "choice(a, b)"}}, count: 1000}}
        operators:
          here: {{from: numbers, custom: "own:where", emits: "id int, user string, instance int", route: {route}}}
        sinks:
          out: {{from: here, file: out.jsonl}}
        """)
    assert "Exchange" not in project.plan(topology)
    project.run(topology)
    rows = sorted(project.json_lines("out.jsonl"), key=lambda row: row["id"])
    order = [row["instance"] for row in rows]
    assert len(rows) == 1000
    assert order == sorted(order), "neighbours in the source stay together"
