"""`--set key=value`: changes to a topology file's tree before it is read."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from penstock.topology.model import Location
from penstock.topology.problems import Problem, suggest
from penstock.topology.yaml_nodes import scalar

_NAMED_SECTIONS = ("sources", "operators", "sinks")
_OPTIONAL_SECTIONS = ("epoch", "with")
"""Mappings that a file may leave out and an override may begin."""


def apply_overrides(root: yaml.MappingNode, overrides: Mapping[str, str]) -> list[Problem]:
    """Put every value at its dotted path; what is written in the file gives way.

    A path must lead to a node that exists; whether its last key means anything is left to the reader,
    which reports it like a key in the file.
    """
    problems = []
    for path, value in overrides.items():
        # Without its value, which may be a password.
        where = f"--set {path}"
        try:
            _put(root, path.split("."), scalar(value, where))
        except LookupError as error:
            problems.append(Problem(Location(where), *error.args))
    return problems


def _put(root: yaml.MappingNode, keys: list[str], value: yaml.ScalarNode) -> None:
    if "" in keys:
        raise LookupError("an empty name in the path", "write for example operators.followers.parallelism=4")
    if len(keys) < 3 and keys[0] in _NAMED_SECTIONS:
        raise LookupError(f"'{'.'.join(keys)}' is not one value",
                          f"write {keys[0]}.NAME.KEY=value")
    parent = root
    for depth, key in enumerate(keys[:-1]):
        parent = _child(parent, key, keys[:depth])
    kept = [(key, node) for key, node in parent.value if key.value != keys[-1]]
    replaced = [index for index, (key, _) in enumerate(parent.value) if key.value == keys[-1]]
    key_node = yaml.ScalarNode("tag:yaml.org,2002:str", keys[-1], value.start_mark, value.end_mark)
    kept.insert(replaced[0] if replaced else len(kept), (key_node, value))
    parent.value = kept


def _child(parent: yaml.MappingNode, key: str, path: list[str]) -> yaml.MappingNode:
    for index, (key_node, node) in enumerate(parent.value):
        if key_node.value != key:
            continue
        if isinstance(node, yaml.MappingNode):
            # An alias shares its node; the change is meant for this place alone.
            own = yaml.MappingNode(node.tag, list(node.value), node.start_mark, node.end_mark)
            parent.value[index] = (key_node, own)
            return own
        raise LookupError(f"'{'.'.join((*path, key))}' is a single value: it has nothing inside to set")
    if key in _OPTIONAL_SECTIONS:
        created = yaml.MappingNode("tag:yaml.org,2002:map", [], parent.start_mark, parent.end_mark)
        key_node = yaml.ScalarNode("tag:yaml.org,2002:str", key, parent.start_mark, parent.end_mark)
        parent.value.append((key_node, created))
        return created
    known = [str(key_node.value) for key_node, _ in parent.value]
    inside = f" in '{'.'.join(path)}'" if path else ""
    raise LookupError(f"no '{key}'{inside} to set", suggest(key, known) or f"there are: {', '.join(known)}")
