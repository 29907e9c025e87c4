"""Figures for Prometheus, in its text format. The names are told in docs/console.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.console.watching import Watched

_HELP = {
    "penstock_up": ("gauge", "1 for a topology that runs, else 0."),
    "penstock_epoch": ("gauge", "The last epoch that was delivered."),
    "penstock_lag_tuples": ("gauge", "About how many tuples wait to be read."),
    "penstock_epoch_seconds": ("gauge", "How long the last epoch took."),
    "penstock_tuple_age_seconds": ("gauge", "About how old the last tuples were when they were delivered."),
    "penstock_at_work": ("gauge", "For which share of the last ten seconds it was at work, 0 to 1."),
    "penstock_tuples_total": ("counter", "Tuples that have left a source or an operator, or reached a sink."),
    "penstock_replicas": ("gauge", "How many replicas there should be."),
    "penstock_replicas_safe": ("gauge", "How many may be relied on now."),
    "penstock_replicas_parked": ("gauge", "How many failed again and again and are not started any more."),
    "penstock_replica_behind_epochs": ("gauge", "How many epochs a replica is behind the first."),
    "penstock_diverged": ("gauge", "1 when replicas have given different output for the same epoch, else 0."),
    "penstock_failed_tuples_total": ("counter", "Tuples that failed for good in an operator."),
    "penstock_late_tuples_total": ("counter", "Tuples that came too late for all of their windows."),
    "penstock_nodes": ("gauge", "How many nodes have a supervisor."),
    "penstock_leading": ("gauge", "1 for the master that leads, else 0."),
}

_Sample = tuple[str, dict[str, str], float]


def metrics(watched: Iterable[Watched], nodes: int, leading: bool) -> str:
    """All figures of all topologies."""
    samples = [*(sample for each in watched for sample in _samples(each)),
               ("penstock_nodes", {}, float(nodes)), ("penstock_leading", {}, float(leading))]  # fmt: skip
    lines = []
    for name, (kind, words) in _HELP.items():
        chosen = [sample for sample in samples if sample[0] == name]
        if chosen:
            lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{_labels(labels)} {value!r}" for _, labels, value in chosen]
    return "\n".join(lines) + "\n"


def _samples(watched: Watched) -> Iterator[_Sample]:
    own = {"topology": watched.wanted.name}
    seen = watched.seen or {}
    yield "penstock_up", own, float(seen.get("how") == "running" and not watched.away)
    yield "penstock_replicas", own, float(watched.wanted.replicas)
    views = seen.get("replicas", [])
    yield "penstock_replicas_safe", own, float(sum(view["phase"] == "safe" for view in views))
    yield "penstock_replicas_parked", own, float(sum(view["phase"] == "parked" for view in views))
    yield "penstock_diverged", own, float(bool(seen.get("divergence")))
    for view in views:
        yield "penstock_replica_behind_epochs", {**own, "replica": view["name"]}, float(view["behind"])
    if seen:
        yield "penstock_epoch", own, float(seen["epoch"])
    progress = seen.get("progress")
    if not progress:
        return
    yield "penstock_lag_tuples", own, float(progress["lag"])
    yield "penstock_epoch_seconds", own, progress.get("epoch_ms", 0.0) / 1000
    yield "penstock_tuple_age_seconds", own, progress.get("age_ms", 0.0) / 1000
    yield "penstock_at_work", own, float(progress.get("at_work", 0.0)) if seen["how"] == "running" else 0.0
    yield "penstock_late_tuples_total", own, float(progress["late"])
    for node, count in progress["tuples"].items():
        if count is not None:
            yield "penstock_tuples_total", {**own, "node": node}, float(count)
    for sink, count in progress["delivered"].items():
        yield "penstock_tuples_total", {**own, "node": f"sink:{sink}"}, float(count)
    for operator, count in progress["failed"].items():
        yield "penstock_failed_tuples_total", {**own, "operator": operator}, float(count)


def _labels(labels: dict[str, str]) -> str:
    def quoted(value: str) -> str:
        return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    return "{" + ",".join(f'{name}="{quoted(value)}"' for name, value in labels.items()) + "}" if labels else ""
