"""A shop's orders, and a bank that does not always answer."""

from pathlib import Path

from penstock import Bolt, Fail

ASKED = Path("out/asked")
"""What the bank remembers. A real one would be a server; this one keeps a file for each order it was asked about."""


def amount_of(tup):
    """One order in a thousand is poison: there is no number in it."""
    written = "n/a" if tup.id % 1000 == 13 else str(100 + tup.id % 50)
    return tup.id, int(written)


class Charge(Bolt):
    """Have the bank charge each order. What it emits for an order that it fails is discarded."""

    def process(self, tup):
        self.emit(tup.id, tup.cents)
        answer = bank(tup.id)
        if answer == "busy":
            self.fail(tup, reason="the bank is busy")
        elif answer == "closed":
            raise Fail("the account is closed")


def bank(order):
    """Busy twice for one order in a thousand, and always for an account that is closed."""
    if order == 4321:
        return "closed"
    if order % 1000 != 500:
        return "charged"
    ASKED.mkdir(parents=True, exist_ok=True)
    with (ASKED / str(order)).open("a+") as file:
        file.write(".")
        file.seek(0)
        return "busy" if len(file.read()) <= 2 else "charged"
