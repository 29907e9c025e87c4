"""From the command to the first result of the url-reach example. `first_result.py CONTESTANT FOLDER`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "url-reach"


def with_penstock(folder: Path) -> float:
    copy = folder / "url-reach"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns(".penstock", "out"))
    return first_line_of([str(Path(sys.executable).parent / "penstock"), "run", str(copy)])


def by_hand(contestant: str, folder: Path) -> float:
    script = Path(__file__).parent / "url_reach_by_hand.py"
    return first_line_of([sys.executable, str(script), contestant, str(folder)])


def first_line_of(command: list[str]) -> float:
    """Seconds until the command prints its first line; it must end well, and the line must hold the count."""
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        took = time.monotonic() - began
        _, errors = process.communicate()
    if process.returncode or "6" not in line:
        raise SystemExit(f"{command} said {line!r} and ended with {process.returncode}:\n{errors[-3000:]}")
    return took


def main() -> None:
    contestant, folder = sys.argv[1], Path(sys.argv[2])
    seconds = with_penstock(folder) if contestant == "penstock" else by_hand(contestant, folder)
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main()
