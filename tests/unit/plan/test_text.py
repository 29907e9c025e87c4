from __future__ import annotations

from dataclasses import replace

from penstock.plan.graph import build_plan
from penstock.plan.rewrites import rewrite
from penstock.plan.text import plan_text
from penstock.topology.model import Dup, Filter, FrozenOptions, Sink, Source, StreamRef, Topology, Union


def test_a_chain_reads_from_top_to_bottom(url_reach: Topology) -> None:
    assert plan_text(build_plan(url_reach)) == """\
url-reach · exactly-once · 1 source · 4 operators · 1 sink

○ tweets      source          file tweets.csv (id int, user string, url string)
● mentions    native          filter url = 'www.tecnico.ulisboa.pt'
│  shuffle ×2
λ followers   Python          reach:followers_of → follower string
◆ unique      native, state   uniq follower
◆ reach       native, state   count
■ out         sink            file out/reach.jsonl

○ source   ● native   λ Python   ◆ native, state   ■ sink"""


def test_branches_merges_ports_and_rewrites_are_drawn(log_alerts: Topology) -> None:
    assert plan_text(rewrite(build_plan(log_alerts))) == """\
log-alerts · at-least-once · 2 sources · 4 operators · 3 sinks

○ logs           source          file logs/*.jsonl
│  shared: computed once, read by 3
├─● errors       native          filter level = 'ERROR' AND size < 10
│ ● strict       native          filter size > 2
│ ▷ to every.merge
├─λ parse        Python          alerts:Parser → good: host string; bad: raw string
│ │  shared: computed once, read by 2
│ ├─┐  port good
│ │ ▷ to every.merge
│ └─┐  port bad
│   ■ rejected   sink            console
└─■ archive      sink            file archive.parquet

○ audit          source          generator
● every.merge    native          merge of strict, parse.good, audit
◆ per_host       native, state   count per host
■ alerts         sink            file alerts.jsonl

○ source   ● native   λ Python   ◆ native, state   ■ sink

Rewrites
  · dropped union 'every': it passes every tuple on unchanged
  · dropped 'every.route' hash(host): the state of 'per_host' divides its input so anyway"""


def test_a_merge_is_drawn_once_when_a_later_branch_reaches_it_again() -> None:
    diamond = Topology("t", sources=(Source("lines", "file", FrozenOptions(file="x")),),
                       operators=(Dup("a", (StreamRef("lines"),)),
                                  Union("both", (StreamRef("a"), StreamRef("lines")))),
                       sinks=(Sink("out", StreamRef("both"), "console", FrozenOptions()),))

    text = plan_text(build_plan(diamond))

    assert text.count("● both.merge") == 1
    assert text.count("▷ to both.merge") == 1
    assert text.count("■ out") == 1


def test_a_long_condition_is_cut_and_its_line_breaks_are_spaces(url_reach: Topology) -> None:
    long = Filter("mentions", (StreamRef("tweets"),), condition="a =\n  1 AND " + "b = 2 OR " * 40)
    text = plan_text(build_plan(replace(url_reach, operators=(long, *url_reach.operators[1:]))))

    line = next(line for line in text.splitlines() if "mentions" in line)
    assert "filter a = 1 AND b = 2" in line
    assert line.endswith("…")


def test_options_other_than_the_main_one_are_not_shown(url_reach: Topology) -> None:
    secret = Source("tweets", "file", FrozenOptions(file="tweets.csv", password="hunter2"))

    assert "hunter2" not in plan_text(build_plan(replace(url_reach, sources=(secret,))))
