"""Whatever is asked of the API, it answers, and never with an error of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode

from ...waiting import wait_until
from .running_console import running_console

ENDLESS = "/api/stream"
QUESTIONS = 40
LONG_QUERY = 5_000
"""Each character may take twelve in a line, of which 64 KB are read."""


def test_no_question_breaks_it(tmp_path: Path) -> None:
    with running_console(tmp_path) as console:
        wait_until(lambda: console.master.leading)
        described = schemathesis.openapi.from_url(f"{console.url}/api/openapi.json")
        asked = []
        for found in described.get_all_operations():
            operation = found.ok()
            if operation.path == ENDLESS:
                continue
            # What fits the description, and what does not.
            questions = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
            if any(operation.iter_parameters()) or operation.body:
                questions |= operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)

            @given(case=questions)
            @settings(max_examples=QUESTIONS, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
            def ask(case: Any) -> None:
                try:
                    answer = case.call(timeout=30)
                except (requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError):
                    # Of a line that is too long for it a server reads no more, and hangs up.
                    assert len(str(case.query)) > LONG_QUERY
                    return
                assert answer.status_code < 500, f"{case.method} {case.path}: {answer.text}"

            ask()
            asked.append(operation.path)
        assert "/api/topologies/{name}/commands" in asked
        assert console.client.text("/healthz") == "alive\n"
