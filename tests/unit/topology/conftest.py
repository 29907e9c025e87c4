from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from penstock.topology.catalogue import REQUIRED, Catalogue, Kind, Option, operator_kinds
from penstock.topology.model import Topology
from penstock.topology.problems import Problem
from penstock.topology.yaml_reader import read_topology_text

Read = Callable[..., tuple[Topology, list[str]]]

URL_REACH = """\
topology: url-reach
delivery: exactly-once
sources:
  tweets: {file: tweets.csv, schema: "id int, user string, url string"}
operators:
  mentions:  {from: tweets, filter: "url = 'www.tecnico.ulisboa.pt'"}
  followers: {from: mentions, custom: "reach:followers_of", emits: "follower string", parallelism: 2, route: shuffle}
  unique:    {from: followers, uniq: follower}
  reach:     {from: unique, count: }
sinks:
  out: {from: reach, file: out/reach.jsonl}
"""


@pytest.fixture(scope="session")
def url_reach() -> str:
    return URL_REACH


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    path = Option("file", "path", "Where the file is.", REQUIRED)
    format_ = Option("format", "choice", "How the file is written.", None, ("csv", "json"))
    return Catalogue((
        Kind("file", "source", "Tuples from a file.", path,
             (format_, Option("delimiter", "string", "Between the columns.", ","),
              Option("header", "boolean", "Whether the first line has names.", False),
              Option("poll", "duration", "How often to look for more.", 1.0))),
        Kind("generator", "source", "Made-up tuples.", Option("generator", "mapping", "Columns.", REQUIRED),
             (Option("rate", "number", "Tuples a second.", REQUIRED, minimum=0),
              Option("seed", "integer", "For the random numbers.", 0))),
        *operator_kinds(),
        Kind("file", "sink", "Tuples into a file.", path, (format_,)),
        Kind("console", "sink", "Tuples on the screen.", None, (Option("limit", "integer", "Rows.", 20),)),
        Kind("memory", "sink", "Tuples in memory.", Option("memory", "boolean", "Nothing, or true.", True)),
    ))


@pytest.fixture(scope="session")
def read(catalogue: Catalogue) -> Read:
    """Reads text as the file `t.yaml`; gives the topology and the problems as text."""

    def read_text(text: str, environ: Mapping[str, str] | None = None, **overrides: str,
                  ) -> tuple[Topology | None, list[str]]:
        dotted = {key.replace("__", "."): value for key, value in overrides.items()}
        topology, problems = read_topology_text(text, "t.yaml", Path(), catalogue, environ or {}, dotted)
        assert all(isinstance(problem, Problem) for problem in problems)
        return topology, [str(problem) for problem in problems]

    return read_text  # type: ignore[return-value]
