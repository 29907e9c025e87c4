"""Write Parquet files of clicks, out of order by up to 30 seconds: `make_clicks.py FOLDER TUPLES KEYS`.

They are the same every time. The last file holds one click a day later, by which a watermark closes every window.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FILE_TUPLES = 500_000
BEGIN_US = 1_700_000_000_000_000
HOUR_US, DAY_US, DISORDER_US = 3_600_000_000, 86_400_000_000, 30_000_000


def main() -> None:
    folder, tuples, keys = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    chance = np.random.default_rng(4)
    for number, first in enumerate(range(0, tuples, FILE_TUPLES)):
        many = min(FILE_TUPLES, tuples - first)
        arrived = BEGIN_US + (np.arange(first, first + many) * (HOUR_US / tuples)).astype(np.int64)
        times = arrived - chance.integers(0, DISORDER_US, many)
        write(folder / f"clicks-{number:04d}.parquet", times, chance.integers(0, keys, many), chance.random(many) * 100)
    write(folder / "clicks-9999.parquet", np.array([BEGIN_US + DAY_US]), np.array([0]), np.array([0.0]))


def write(path: Path, times: np.ndarray, keys: np.ndarray, amounts: np.ndarray) -> None:
    columns = {
        "clicked_at": pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC")),
        "user": pa.array(keys, pa.int64()),
        "amount": pa.array(amounts, pa.float64()),
    }
    pq.write_table(pa.table(columns), path)


if __name__ == "__main__":
    main()
