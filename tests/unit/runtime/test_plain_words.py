"""A failure of Spark's is told in one sentence, with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ConnectorError, DeliveryError
from penstock.runtime.plain_words import in_plain_words, in_user_terms, root_cause
from penstock.runtime.state_folder import StateFolder

STORY = """[STREAM_FAILED] Query [id = 1] terminated with exception: An error occurred while calling o295.collectAsList.
: org.apache.spark.SparkException: Job aborted due to stage failure
\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:1)
Caused by: {cause}
\tat somewhere.Else.run(Else.scala:7)
"""


def told(cause: str) -> Exception:
    return in_plain_words(STORY.format(cause=cause), 7, Path("state/checkpoint"), Path("logs/failure.log"))


@pytest.mark.parametrize(
    ("cause", "kind", "words"),
    [
        ("java.io.IOException: No space left on device", DeliveryError, "no space left on the disk of state"),
        ("java.lang.OutOfMemoryError: Java heap space", DeliveryError, "give it more with --memory"),
        ("org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error", DeliveryError, "--fresh"),
        ("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed).", DeliveryError, "gone"),
        ("java.io.EOFException", DeliveryError, "a Python process of Spark's is gone"),
        ("java.lang.ArithmeticException: / by zero", DeliveryError, "epoch 7 failed: ArithmeticException: / by zero"),
    ],
)
def test_what_went_wrong_comes_first_and_the_story_is_named(cause: str, kind: type[Exception], words: str) -> None:
    error = told(cause)
    assert type(error) is kind
    first, last = str(error).splitlines()
    assert words in first
    assert last == "  the whole story is in logs/failure.log"


def test_a_query_that_ends_without_a_word_has_lost_a_python_process() -> None:
    silent = "[STREAM_FAILED] Query [id = 8c, runId = c6] terminated with exception:  SQLSTATE: XXKST"
    error = in_plain_words(silent, 31, Path("state/checkpoint"), Path("logs/failure.log"))
    assert str(error).startswith("epoch 31 failed: a Python process of Spark's is gone (killed, or out of memory?)")
    assert "STREAM_FAILED" not in str(error)


def test_without_a_cause_the_first_line_has_to_do() -> None:
    assert root_cause("\n  something odd\n  more\n") == "something odd"


def test_an_error_says_which_epoch_failed_with_it_where_one_did(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    full = ConnectorError("sink 'out': the disk is full")
    assert in_user_terms(Exception(STORY), full, 7, state).epoch == 7
    assert in_user_terms(Exception(STORY.format(cause="java.io.EOFException")), None, 7, state).epoch is None
