"""Write a file of JSON lines of about so many megabytes: `make_events.py FILE MEGABYTES`. The same every time."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

BLOCK = 20_000


def block(seed: int) -> bytes:
    rng = random.Random(seed)
    lines = [
        json.dumps(
            {
                "id": seed * BLOCK + number,
                "user": f"user{rng.randrange(10_000)}",
                "kind": rng.choice(("view", "click", "buy", "leave")),
                "page": f"/shop/{rng.randrange(500)}/item",
                "price": round(rng.random() * 100, 2),
                "note": "x" * 60,
            }
        )
        for number in range(BLOCK)
    ]
    return ("\n".join(lines) + "\n").encode()


def main() -> None:
    path, megabytes = Path(sys.argv[1]), int(sys.argv[2])
    # A few different blocks, repeated: making every line anew would take longer than the benchmark.
    blocks = [block(seed) for seed in range(5)]
    written = 0
    with path.open("wb") as file:
        while written < megabytes * 1_000_000:
            for each in blocks:
                written += file.write(each)


if __name__ == "__main__":
    main()
