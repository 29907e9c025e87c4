"""Another process that uses a coordinator; the tests start, kill and freeze it.

    own KEY VALUE         hold an ephemeral entry; says `owns VALUE`, and `expired` when the session is lost
    campaign NAME WHO     stand for election; says `leads` and `leads not`
    propose KEY VALUE     say what the key holds after create_if_absent
    increment KEY TIMES   add one to a number, with replace

All but the last two go on until their input ends.
"""

from __future__ import annotations

import sys
import threading

from penstock.coordination.base import Coordinator
from penstock.coordination.election import Election
from penstock.coordination.opening import open_coordinator

_SPEAKING = threading.Lock()


def increment(coordinator: Coordinator, key: str) -> None:
    while True:
        held = coordinator.get(key)
        assert held is not None
        if coordinator.replace(key, held, str(int(held) + 1)):
            return


def say(text: str) -> None:
    # Two threads speak here, and `print` writes the end of a line by itself.
    with _SPEAKING:
        print(text, flush=True)


def main(url: str, ttl: str, verb: str, name: str, detail: str) -> None:
    coordinator = open_coordinator(url, float(ttl))
    if verb == "own":
        coordinator.on_expired(lambda: say("expired"))
        say(f"owns {coordinator.create_ephemeral(name, detail)}")
        sys.stdin.read()
    elif verb == "campaign":
        Election(coordinator, name, detail, float(ttl)).campaign(lambda leads: say("leads" if leads else "leads not"))
        say("campaigns")
        sys.stdin.read()
    elif verb == "propose":
        say(coordinator.create_if_absent(name, detail))
    elif verb == "increment":
        for _ in range(int(detail)):
            increment(coordinator, name)
    coordinator.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
