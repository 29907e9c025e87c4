from __future__ import annotations

import os

import pytest

from penstock.bench import sampling
from penstock.bench.sampling import MEMORY_SECONDS, ProcessSampler, Sample


def test_memory_is_looked_at_less_often_than_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, looks = [100.0], []
    monkeypatch.setattr(sampling.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sampling, "processes_of", lambda session: looks.append(session) or [])
    monkeypatch.setattr(sampling, "sample_of", lambda _: Sample(now[0], 1.0, 2.0))
    sampler = ProcessSampler(os.getsid(0))
    for number in range(11):
        now[0] = 100.0 + number * sampling.INTERVAL_SECONDS
        sampler._look()
    assert len(looks) == 11
    assert [sample.time for sample in sampler.samples] == pytest.approx([100.0, 101.0, 102.0])
    assert MEMORY_SECONDS >= 1.0
