"""A bolt that books orders at a service, without waiting for each answer."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from penstock import Bolt


class Book(Bolt):
    """An order is done when its answer is here, not when `process` returns."""

    auto_ack = False

    def initialize(self):
        self.service = Service()

    def process(self, tup):
        self.service.book(tup.id, lambda receipt: self.answered(tup, receipt))

    def answered(self, tup, receipt):
        """Called from a thread of the service."""
        self.emit(tup.id, receipt, anchor=tup)
        self.ack(tup)


class Service:
    """Stands for a server far away. It loses one order in a hundred the first time, and order 250 every time."""

    def __init__(self):
        self._threads = ThreadPoolExecutor(8)
        self._lost = Path("out/lost").absolute()

    def book(self, order, answer):
        """Ask for a receipt; `answer` is called with it, some time."""
        self._threads.submit(self._work, order, answer)

    def _work(self, order, answer):
        time.sleep(0.005)
        if order == 250 or (order % 100 == 42 and self._loses(order)):
            return
        answer(f"R-{order}")

    def _loses(self, order):
        self._lost.mkdir(parents=True, exist_ok=True)
        try:
            (self._lost / str(order)).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True
