"""Whatever is asked of the API, it answers, and never with an error of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode

from ...waiting import wait_until
from .running_console import running_console

ENDLESS = "/api/stream"
QUESTIONS = 40


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
            @settings(max_examples=QUESTIONS, deadline=None, suppress_health_check=list(HealthCheck))
            def ask(case: Any) -> None:
                answer = case.call(timeout=30)
                assert answer.status_code < 500, f"{case.method} {case.path}: {answer.text}"

            ask()
            asked.append(operation.path)
        assert "/api/topologies/{name}/commands" in asked
        assert console.client.text("/healthz") == "alive\n"
