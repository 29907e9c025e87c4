"""Run tests/spark and tests/system side by side: each alone leaves half of a machine with two cores idle.

What the first says is seen as it comes, what the second says when the first has ended. Exit code 0 when both pass.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import ExitStack

SUITES = ("tests/spark", "tests/system")


def main() -> int:
    with ExitStack() as stack:
        started = []
        for number, suite in enumerate(SUITES):
            log = None if number == 0 else stack.enter_context(tempfile.TemporaryFile("w+"))
            command = [sys.executable, "-m", "pytest", *sys.argv[1:], suite]
            process = subprocess.Popen(command, stdout=log, stderr=log and subprocess.STDOUT)
            # Ended with the rest, whatever happens here.
            stack.callback(process.wait)
            stack.callback(process.terminate)
            started.append((suite, process, log))
        failed = False
        for suite, process, log in started:
            failed |= process.wait() != 0
            if log is not None:
                log.seek(0)
                print(f"{suite}:", log.read(), sep="\n", flush=True)
        return int(failed)


if __name__ == "__main__":
    sys.exit(main())
