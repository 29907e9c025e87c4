"""Topologies that several tests of the plan look at."""

from __future__ import annotations

import pytest

from penstock.topology.model import (
    Count,
    Custom,
    Delivery,
    Filter,
    FrozenOptions,
    Route,
    RouteKind,
    Sink,
    Source,
    StreamRef,
    Topology,
    Union,
    Uniq,
)
from penstock.topology.schema import parse_schema


@pytest.fixture
def url_reach() -> Topology:
    """A chain: the example of the getting-started page."""
    return Topology(
        "url-reach",
        sources=(Source("tweets", "file", FrozenOptions(file="tweets.csv"),
                        parse_schema("id int, user string, url string")),),
        operators=(
            Filter("mentions", (StreamRef("tweets"),), condition="url = 'www.tecnico.ulisboa.pt'"),
            Custom("followers", (StreamRef("mentions"),), code="reach:followers_of", parallelism=2,
                   emits=(("", parse_schema("follower string")),), route=Route(RouteKind.SHUFFLE)),
            Uniq("unique", (StreamRef("followers"),), keys=("follower",)),
            Count("reach", (StreamRef("unique"),)),
        ),
        sinks=(Sink("out", StreamRef("reach"), "file", FrozenOptions(file="out/reach.jsonl")),),
    )


@pytest.fixture
def log_alerts() -> Topology:
    """A fan-out, two ports, a fan-in, a route, and an edge that passes a layer."""
    return Topology(
        "log-alerts",
        Delivery.AT_LEAST_ONCE,
        sources=(Source("logs", "file", FrozenOptions(file="logs/*.jsonl")),
                 Source("audit", "generator", FrozenOptions())),
        operators=(
            Filter("errors", (StreamRef("logs"),), condition="level = 'ERROR' AND size < 10"),
            Custom("parse", (StreamRef("logs"),), code="alerts:Parser", emits=(
                ("good", parse_schema("host string")), ("bad", parse_schema("raw string")))),
            Filter("strict", (StreamRef("errors"),), condition="size > 2"),
            Union("every", (StreamRef("strict"), StreamRef("parse", "good"), StreamRef("audit")),
                  route=Route(RouteKind.HASH, ("host",)), parallelism=2),
            Count("per_host", (StreamRef("every"),), keys=("host",)),
        ),
        sinks=(Sink("alerts", StreamRef("per_host"), "file", FrozenOptions(file="alerts.jsonl")),
               Sink("rejected", StreamRef("parse", "bad"), "console", FrozenOptions()),
               Sink("archive", StreamRef("logs"), "file", FrozenOptions(file="archive.parquet"))),
    )
