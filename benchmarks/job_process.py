"""Run one job of a benchmark in processes of its own, and take down its figures."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from penstock.bench.sampling import INTERVAL_SECONDS, ProcessSampler
from penstock.chaos.life import Session

JOBS = Path(__file__).parent / "jobs"
_PATIENCE_SECONDS = 3600.0

Figures = dict[str, float]


def run_job(job: str, variant: str, *arguments: str, memory: bool = False, shown: bool = False) -> Figures:
    """Run `jobs/<job>.py VARIANT FOLDER ARGUMENTS…`; it prints its figures as the last line, in JSON.

    With `memory` the peaks are added; where the job says when its run `began` and `ended`, also those of the run's
    first and last third. With `shown`, what it says on standard error is seen at once.
    """
    with tempfile.TemporaryDirectory(prefix="penstock-bench-", ignore_cleanup_errors=True) as folder:
        command = [sys.executable, str(JOBS / f"{job}.py"), variant, folder, *arguments]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=None if shown else subprocess.PIPE, text=True,
            start_new_session=True,
        )
        try:
            if memory:
                with ProcessSampler(process.pid, INTERVAL_SECONDS) as sampler:
                    out, errors = process.communicate(timeout=_PATIENCE_SECONDS)
            else:
                out, errors = process.communicate(timeout=_PATIENCE_SECONDS)
        finally:
            # Whatever the job has left running goes with it.
            Session(process.pid).kill_all()
            process.wait()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{out[-2000:]}\n{(errors or '')[-4000:]}")
    figures: Figures = json.loads(out.strip().splitlines()[-1])
    began, ended = figures.pop("began", None), figures.pop("ended", None)
    if memory:
        figures |= sampler.peaks()
        if began is not None and ended is not None:
            third = (ended - began) / 3
            figures["first_third_peak_mb"] = sampler.peak_between(began, began + third)
            figures["last_third_peak_mb"] = sampler.peak_between(ended - third, ended)
    return figures
