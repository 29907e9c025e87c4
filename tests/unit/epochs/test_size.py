from __future__ import annotations

import pytest

from penstock.epochs.size import next_limit


@pytest.mark.parametrize(("limit", "tuples", "seconds", "after"), [
    (100, 100, 0.3, 200),
    (300, 300, 0.3, 400),
    (400, 400, 0.3, 400),
    (100, 99, 0.3, 100),
    (100, 100, 2.0, 100),
    (400, 400, 5.0, 200),
    (150, 150, 5.0, 100),
    (100, 100, 5.0, 100),
])
def test_the_limit_follows_the_time_that_full_epochs_take(limit: int, tuples: int, seconds: float, after: int) -> None:
    assert next_limit(limit, 100, 400, tuples, seconds) == after
