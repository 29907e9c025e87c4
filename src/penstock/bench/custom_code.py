"""The code of somebody's own that `penstock bench` measures: the same sum for a tuple, for a batch, and with state."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock import Bolt


def of_tuple(user: int, amount: int) -> int:
    return user * 100 + amount


def of_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    total = pc.add(pc.multiply(batch.column("user").cast(pa.int64()), 100), batch.column("amount").cast(pa.int64()))
    return pa.RecordBatch.from_arrays([batch.column("id"), total], names=["id", "total"])


class Total(Bolt):
    """Adds up the amounts of a user, and says the total now and then."""

    def process(self, tup: Any) -> None:
        total = self.context.state.value("total", 0)
        now = total.get() + tup.amount
        total.set(now)
        if tup.amount == 0:
            self.emit(tup.user, now)
