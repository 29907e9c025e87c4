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
    began = time.monotonic()
    command = [str(Path(sys.executable).parent / "penstock"), "run", str(copy)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        took = time.monotonic() - began
        process.wait()
    return took


def by_hand(contestant: str, folder: Path) -> float:
    began = time.monotonic()
    command = [sys.executable, str(Path(__file__).parent / "url_reach_by_hand.py"), contestant, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        took = time.monotonic() - began
        process.wait()
    return took


def main() -> None:
    contestant, folder = sys.argv[1], Path(sys.argv[2])
    seconds = with_penstock(folder) if contestant == "penstock" else by_hand(contestant, folder)
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main()
