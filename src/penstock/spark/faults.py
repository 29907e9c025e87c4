"""Carry a user's mistake from a Python worker, through Spark's stack traces, back to the driver."""

from __future__ import annotations

import json
import re
from typing import Any

from penstock.errors import ConnectorError, MalformedRecord, OperatorError, PenstockError

_MARK = "PENSTOCK-FAULT "
_PATTERN = re.compile(_MARK + r"(\{.*?\}) END-FAULT")
_KINDS: dict[str, type[PenstockError]] = {
    "operator": OperatorError,
    "malformed": MalformedRecord,
    "connector": ConnectorError,
}


class WorkerFault(Exception):
    """Raised in a worker; its text survives Spark's wrapping and is found again by `fault_in`."""

    def __init__(self, kind: str, message: str) -> None:
        # JSON escapes line breaks, so the fault stays on one line whatever wraps it.
        super().__init__(f"{_MARK}{json.dumps({'kind': kind, 'message': message})} END-FAULT")


def fault_in(text: str) -> PenstockError | None:
    """The fault that a Spark exception's text carries, or None."""
    match = _PATTERN.search(text)
    if match is None:
        return None
    detail: dict[str, Any] = json.loads(match[1])
    return _KINDS[detail["kind"]](detail["message"])
