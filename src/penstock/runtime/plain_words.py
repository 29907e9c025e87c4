"""What Spark's exceptions mean to the user: from a stack trace to one sentence, what to do, and where the rest is."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from penstock.errors import DeliveryError, PenstockError
from penstock.runtime.state_folder import StateFolder
from penstock.spark.faults import fault_in

_CAUSE = re.compile(r"^(?:\s*Caused by: |: )(?P<kind>[\w.$]+)(?:: (?P<message>.*))?$", re.MULTILINE)
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded")
_STATE = re.compile(r"CANNOT_LOAD_STATE_STORE|CANNOT_RESTORE|/checkpoint/state/|RocksDBException|StateStore\w*\.scala")
_WORKER = re.compile(r"Python worker exited unexpectedly|java\.io\.EOFException|terminated with exception:\s+SQLSTATE")
"""What Spark says, and does not say, when a Python process that it works with dies."""
_MEMORY = re.compile(r"OutOfMemoryError|GC overhead limit exceeded")


def is_about_state(story: str) -> bool:
    """Whether an epoch failed because the operators' state could not be read."""
    return _STATE.search(story) is not None and not _NO_SPACE.search(story) and not _MEMORY.search(story)


def in_user_terms(
    error: Exception, failure: BaseException | None, epoch: int | None, state: StateFolder
) -> PenstockError:
    """The error to show for a query that ended with `error`, and its last epoch, which ended with `failure` if any."""
    shown = _shown(error, failure, epoch, state)
    if failure is not None:
        shown.epoch = epoch
    return shown


def _shown(error: Exception, failure: BaseException | None, epoch: int | None, state: StateFolder) -> PenstockError:
    if isinstance(failure, PenstockError):
        return failure
    found = fault_in(str(failure)) or fault_in(str(error))
    if found is not None:
        return found
    log = state.logs / "failure.log"
    story = f"{error}\n\n{failure}\n"
    # The disk may be full: then the story is all the more worth telling.
    with suppress(OSError):
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(story)
    failed = epoch if failure is not None and epoch is not None else state.committed().epoch + 1
    return in_plain_words(story, failed, state.checkpoint, log)


def in_plain_words(story: str, epoch: int, checkpoint: Path, log: Path) -> PenstockError:
    """The error to show for an epoch that failed with the stack trace `story`, which is kept in `log`."""
    rest = f"\n  the whole story is in {log}"
    if _NO_SPACE.search(story):
        return DeliveryError(f"epoch {epoch} failed: {_no_space(checkpoint.parent)}{rest}")
    if _MEMORY.search(story):
        return DeliveryError(
            f"epoch {epoch} failed: Spark ran out of memory: give it more with --memory, or make epochs smaller with "
            "epoch.max_tuples" + rest
        )
    cause = root_cause(story)
    if is_about_state(story):
        return DeliveryError(
            f"epoch {epoch} failed: the operators' state in {checkpoint / 'state'} cannot be read ({cause}): put back "
            "what was lost or damaged there, or start anew with --fresh" + rest
        )
    if _WORKER.search(story):
        return DeliveryError(
            f"epoch {epoch} failed: a Python process of Spark's is gone (killed, or out of memory?): the same command "
            "goes on from there" + rest
        )
    return DeliveryError(f"epoch {epoch} failed: {cause}" + rest)


@contextmanager
def full_disk_in_plain_words(folder: Path) -> Iterator[None]:
    """Turn the operating system's word that the disk of `folder` is full into an error that a user can act on."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DeliveryError(_no_space(folder)) from error
        raise


def _no_space(folder: Path) -> str:
    return (
        f"no space left on the disk of {folder} or of the temporary folder: free some space; the epochs committed so "
        "far are whole, and the same command goes on from there"
    )


def jvm_gone(epoch: int, log: Path) -> PenstockError:
    """The error to show when the JVM does not answer any more, or never did."""
    when = f"after epoch {epoch}: the same command goes on from there" if epoch else "before the first epoch was done"
    return DeliveryError(
        f"Spark's Java process is gone (killed, or out of memory?) {when}\n  what it said last is in {log}"
    )


def root_cause(story: str) -> str:
    """The innermost cause that says something, without its stack."""
    causes = [f"{found['kind'].rsplit('.', 1)[-1]}: {found['message']}" for found in _CAUSE.finditer(story)
              if found["message"]]
    if causes:
        return causes[-1][:300]
    return next((line.strip() for line in story.splitlines() if line.strip()), "unknown")[:300]
