"""The plan drawn for a terminal: one line a step, the streams as lines that branch on the left."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.plan.description import Node, Role, brief_of, counted, role_of, route_label
from penstock.plan.graph import Acker, Apply, Exchange, Gather, Plan, Port, Read, Share, Step, Write

MARKS = {Role.SOURCE: "○", Role.NATIVE: "●", Role.PYTHON: "λ", Role.STATEFUL: "◆", Role.SINK: "■"}
WORDS = {Role.SOURCE: "source", Role.NATIVE: "native", Role.PYTHON: "Python", Role.STATEFUL: "native, state",
         Role.SINK: "sink"}
LONGEST_BRIEF = 100


@dataclass(frozen=True)
class _Line:
    drawing: str
    words: str = ""
    brief: str = ""


def plan_text(plan: Plan) -> str:
    """The plan as lines to print, without a newline at the end.

    A stream runs downwards; where several steps read it, it branches. A merge stands below its last
    input, and its other inputs point to it.
    """
    lines: list[_Line] = []
    drawn: set[str] = set()
    for step in plan.steps:
        if isinstance(step, Read):
            lines.extend([_Line("")] if lines else [])
            _draw_stream(plan, step, "", "", lines, drawn)
    sections = [_heading(plan), _aligned(lines), _legend(plan)]
    if plan.notes:
        sections.append("\n".join(["Rewrites", *(f"  · {note}" for note in plan.notes)]))
    return "\n\n".join(section for section in sections if section)


def _draw_stream(plan: Plan, step: Step, lead: str, indent: str, lines: list[_Line], drawn: set[str]) -> None:
    """Draw `step` and all that follows it; `lead` stands before its own line, `indent` before the rest."""
    while True:
        if step.id in drawn or not drawn.issuperset(step.reads()):
            lines.append(_Line(f"{lead}▷ to {step.id}"))
            return
        label = _edge_label(step)
        if not label:
            lines.append(_node_line(step, lead))
        else:
            lines.append(_Line(f"{indent}│  {label}" if lead == indent else f"{lead}┐  {label}"))
        lead = indent
        drawn.add(step.id)
        following = _distinct(plan.readers(step.id))
        if len(following) != 1:
            break
        step = following[0]
    for each in following:
        bend, beside = ("└─", "  ") if each is following[-1] else ("├─", "│ ")
        _draw_stream(plan, each, indent + bend, indent + beside, lines, drawn)


def _distinct(steps: tuple[Step, ...]) -> list[Step]:
    return list({step.id: step for step in steps}.values())


def _edge_label(step: Step) -> str:
    """What stands beside the line of a stream, for steps that only say how it flows."""
    match step:
        case Exchange():
            return route_label(step.route, step.parallelism)
        case Port():
            return f"port {step.name or 'default'}"
        case Share():
            return f"shared: computed once, read by {step.consumers}"
        case _:
            return ""


def _node_line(step: Step, lead: str) -> _Line:
    node = _node_of(step)
    if isinstance(step, Acker):
        return _Line(f"{lead}● {step.id}", WORDS[Role.NATIVE], f"whether {', '.join(step.operators)} acked every tuple")
    if isinstance(step, Gather):
        named = ", ".join(f"{port}: {name}" for port, name in zip(step.ports, step.inputs, strict=True))
        return _Line(f"{lead}● {step.id}", WORDS[Role.NATIVE], f"ports {named}")
    if node is None:
        return _Line(f"{lead}● {step.id}", WORDS[Role.NATIVE], f"merge of {', '.join(step.reads())}")
    brief = brief_of(node)
    if len(brief) > LONGEST_BRIEF:
        brief = brief[: LONGEST_BRIEF - 1] + "…"
    return _Line(f"{lead}{MARKS[role_of(node)]} {step.id}", WORDS[role_of(node)], brief)


def _node_of(step: Step) -> Node | None:
    """The node of the topology that a step stands for, if it stands for one."""
    match step:
        case Read():
            return step.source
        case Apply():
            return step.operator
        case Write():
            return step.sink
        case _:
            return None


def _aligned(lines: list[_Line]) -> str:
    described = [line for line in lines if line.words]
    left = max((len(line.drawing) for line in described), default=0)
    middle = max((len(line.words) for line in described), default=0)
    return "\n".join(f"{line.drawing:<{left}}   {line.words:<{middle}}   {line.brief}".rstrip()
                     for line in lines)


def _heading(plan: Plan) -> str:
    parts = [plan.topology.name, str(plan.topology.delivery),
             counted(sum(isinstance(step, Read) for step in plan.steps), "source"),
             counted(sum(isinstance(step, Apply) for step in plan.steps), "operator"),
             counted(sum(isinstance(step, Write) for step in plan.steps), "sink")]
    return " · ".join(parts)


def _legend(plan: Plan) -> str:
    nodes = [node for node in map(_node_of, plan.steps) if node is not None]
    present = {role_of(node) for node in nodes}
    return "   ".join(f"{MARKS[role]} {WORDS[role]}" for role in Role if role in present)
