"""Blocks cards that pay too much in a short time."""

from datetime import timedelta

from penstock import Bolt

TEN_MINUTES = timedelta(minutes=10)


class Fraud(Bolt):
    """What it remembers of a card: the payments of the last ten minutes, and whether it is blocked."""

    def initialize(self, limit):
        self.limit = limit

    def process(self, tup):
        state = self.context.state
        blocked = state.value("blocked", False)
        if blocked.get():
            self.emit(tup.card, f"refused {tup.amount:.2f} at {tup.shop}")
            return
        recent = state.list("recent", ttl=TEN_MINUTES)
        recent.append(tup.amount)
        if sum(recent) > self.limit:
            self.emit(tup.card, f"blocked after {len(recent)} payments of {sum(recent):.2f}")
            blocked.set(True)
            self.context.timers.set(self.context.time + TEN_MINUTES, "free")

    def on_timer(self, name):
        self.context.state.clear()
        self.emit(self.context.key, "freed")
