from __future__ import annotations

from side_by_side.ratios import Figure
from side_by_side.recovery import Recovered
from side_by_side.table import rate, ratios_table, recovery_table


def test_every_contestant_has_a_cell_with_its_speed_and_our_ratio_to_it() -> None:
    figures = {"penstock": Figure(2_600_000.0), "pyflink": Figure(650_000.0), "bytewax": Figure(2_000_000.0)}
    shown = ratios_table({"word-count": figures})

    assert "| 2.60 M/s | 650 K/s (4.00 ×) | 2.00 M/s (1.30 ×) | 1.3 × the best peer: yes, 1.30 × |" in shown


def test_a_peer_that_failed_is_shown_with_its_reason() -> None:
    failed = Figure(trouble="cannot be installed: no wheel")
    shown = ratios_table({"json": {"penstock": Figure(50e6), "pathway": failed}})

    assert "| 50.0 MB/s | failed [1] | 3 × every peer: not measured |" in shown
    assert shown.endswith("[1] Pathway 0.33.0: cannot be installed: no wheel")


def test_what_a_peer_does_not_have_is_not_a_failure() -> None:
    lacking = Figure(trouble="its operators have no Arrow batches")

    assert "| none [1] |" in ratios_table({"batch-function": {"penstock": Figure(1e6), "bytewax": lacking}})


def test_whoever_had_no_turn_yet_has_not_failed() -> None:
    shown = ratios_table({"json": {"penstock": Figure(50e6), "pathway": Figure(trouble="not run")}})

    assert "| 50.0 MB/s | not run | 3 × every peer: not measured |" in shown
    assert "| Pathway 0.33.0 | not run |" in recovery_table({"pathway": []})


def test_the_ceiling_is_named_as_such() -> None:
    shown = ratios_table({"stateless": {"penstock": Figure(1e6), "bytewax": Figure(6e6)}})

    assert "6.00 M/s (0.17 ×) [1]" in shown
    assert "the ceiling" in shown


def test_bytes_are_counted_in_megabytes() -> None:
    assert rate("json", 61_250_000.0) == "61.2 MB/s"
    assert rate("function", 43_000.0) == "43 K/s"


def test_a_recovery_shows_medians_of_times_and_the_worst_of_the_rest() -> None:
    runs = [Recovered(9.0, 1.0, 0, 3, 26), Recovered(11.0, 2.0, 5, 0, 0), Recovered(10.0, 1.5)]
    shown = recovery_table({"penstock": runs, "pathway": [Recovered(trouble="it said nothing")]})

    assert "| Penstock | 10.0 | 1.5 | 5 | 3 | 26 |" in shown
    assert "| Pathway 0.33.0 | failed [1] |" in shown
    assert "[1] Pathway 0.33.0: it said nothing" in shown
