"""How the cost of state grows with its keys: epochs, checkpoints, backups, restores, rescales, and memory.

    python benchmarks/state_growth.py [--keys 10000 100000 1000000 5000000] [--markdown FILE]

Each number of keys is measured in processes of its own: `jobs/state_growth.py`. In an epoch that changes 1,000 keys, or
10,000, `ms` is the time of the epoch and `kB` what it writes of state: both should depend on what changes, and not on
how much there is. `RocksDB MB` is what Spark says that RocksDB has in memory; each of the two instances may
have 40, and 10 bits a key. The other two are the peaks of the JVM, RocksDB's memory included, and of all processes
together.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from job_process import Figures, run_job

from penstock.cli.bench_page import FigureTable, Section, write_section

SECTION = Section("state growth", "State as it grows")
COLUMNS = (
    ("state MB", "state_mb", 1.0, ".1f"),
    ("fill s", "fill", 1.0, ".1f"),
    ("1k ms", "epoch_1000_ms", 1.0, ".0f"),
    ("1k kB", "epoch_1000_bytes", 1e-3, ".0f"),
    ("10k ms", "epoch_10000_ms", 1.0, ".0f"),
    ("10k kB", "epoch_10000_bytes", 1e-3, ".0f"),
    ("checkpoint", "checkpoint", 1.0, ".2f"),
    ("backup", "backup", 1.0, ".2f"),
    ("restore", "restore", 1.0, ".2f"),
    ("1st epoch", "first_epoch", 1.0, ".2f"),
    ("2 to 5", "split", 1.0, ".2f"),
    ("5 to 2", "merge", 1.0, ".2f"),
    ("RocksDB MB", "rocksdb_mb", 1.0, ",.0f"),
    ("JVM MB", "peak_jvm_mb", 1.0, ",.0f"),
    ("peak MB", "peak_mb", 1.0, ",.0f"),
)
"""What is shown: its heading, the figure, what it is multiplied by, and its form."""

_WIDTH = 10


def cells_of(keys: int, figures: Figures) -> list[str]:
    return [f"{keys:,}", *(f"{figures[name] * factor:{form}}" for _, name, factor, form in COLUMNS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, nargs="+", default=[10_000, 100_000, 1_000_000, 5_000_000])
    parser.add_argument("--markdown", type=Path, metavar="FILE",
                        help="write the table for a page of docs, into its section where there is one")
    options = parser.parse_args()
    print(f"{'keys':>{_WIDTH}} " + " ".join(f"{heading:>{_WIDTH}}" for heading, *_ in COLUMNS), flush=True)
    rows: list[list[str]] = []
    for keys in options.keys:
        cells = cells_of(keys, run_job("state_growth", str(keys), memory=True, shown=True))
        print(" ".join(f"{cell:>{_WIDTH}}" for cell in cells), flush=True)
        rows.append(cells)
        if options.markdown is not None:
            table = FigureTable(["keys", *(heading for heading, *_ in COLUMNS)], rows)
            write_section(options.markdown, SECTION, table.as_markdown())


if __name__ == "__main__":
    main()
