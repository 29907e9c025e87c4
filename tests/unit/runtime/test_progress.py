from __future__ import annotations

from penstock.epochs.record import EpochRecord
from penstock.runtime.progress import Progress


def test_what_an_epoch_took_all_in_all_counts_from_its_cut() -> None:
    progress = Progress()
    # Since then it had nothing to do.
    progress.work._free_since -= 60.0
    for epoch in range(1, 7):
        with progress.work.at_work(age=epoch if epoch == 1 else 0.0):
            progress.epoch_committed(EpochRecord(epoch, 0, {}, {}), 100.0 * epoch, {}, {})
        if epoch == 1:
            (whole,) = progress.snapshot().wholes_ms
            assert 1000.0 <= whole < 60000.0
            assert progress.snapshot().last_epoch_ms == 100.0
    # The last four, whatever nobody has told the share of work.
    assert progress.snapshot().wholes_ms == (300.0, 400.0, 500.0, 600.0)
