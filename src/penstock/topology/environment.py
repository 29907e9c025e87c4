"""`${env:NAME}` and `${env:NAME:-default}` in the values of a topology file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from penstock.errors import TopologyError
from penstock.topology.problems import suggest

_REFERENCE = re.compile(r"\$\{env\b[^}]*\}?")
_FORM = re.compile(r"\$\{env:(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}")


class Outside(str):
    """Text that did not stand in the file itself: from the environment or from `--set`.

    Outside text has no YAML type of its own (`"${env:PORT}"` must be quoted in `{…}`), so it is fitted to
    the option it is given to: "4" is a number for `parallelism` and text for `file`. Where no type is
    known, `value` is what it means.
    """

    value: Any

    def __new__(cls, text: str, value: Any) -> Outside:
        outside = super().__new__(cls, text)
        outside.value = value
        return outside


def mentions_environment(text: str) -> bool:
    """True when `text` has something for `substitute` to replace."""
    return _REFERENCE.search(text) is not None


def variables_in(text: str) -> tuple[str, ...]:
    """The names of the variables that a text has in it, each once."""
    return tuple(dict.fromkeys(form["name"] for form in _FORM.finditer(text)))


def substitute(text: str, environ: Mapping[str, str]) -> str:
    """`text` with every `${env:…}` replaced; raises TopologyError for an unset name without a default.

    An empty variable counts as unset when there is a default, as in a shell's `${NAME:-default}`.
    Other `${…}` are left alone.
    """
    return _REFERENCE.sub(lambda match: _value(match[0], environ), text)


def _value(reference: str, environ: Mapping[str, str]) -> str:
    form = _FORM.fullmatch(reference)
    if form is None:
        raise TopologyError(f"'{reference}' is not ${{env:NAME}} or ${{env:NAME:-default}}")
    name, default = form["name"], form["default"]
    value = environ.get(name)
    if default is not None:
        return value or default
    if value is None:
        advice = suggest(name, environ) or f"set it, or give a default: ${{env:{name}:-…}}"
        raise TopologyError(f"the environment variable {name} is not set; {advice}")
    return value
