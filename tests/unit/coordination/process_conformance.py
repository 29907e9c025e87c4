"""What coordinators promise to processes that die, freeze and race."""

from __future__ import annotations

import time

from penstock.coordination.base import Coordinator
from penstock.coordination.election import Election

from ...waiting import wait_until
from .coordinator_conformance import CoordinatorConformance
from .process_surroundings import ProcessSurroundings


class ProcessConformance(CoordinatorConformance):
    """The suite for coordinators that several processes share."""

    def test_of_many_processes_exactly_one_wins(
        self, coordinator: Coordinator, surroundings: ProcessSurroundings
    ) -> None:
        proposals = [surroundings.start("propose", "k", str(number)) for number in range(4)]
        held = {proposal.says() for proposal in proposals}
        assert held == {coordinator.get("k")}

    def test_replacing_from_many_processes_loses_nothing(
        self, coordinator: Coordinator, surroundings: ProcessSurroundings
    ) -> None:
        coordinator.put("count", "0")
        counting = [surroundings.start("increment", "count", "25") for _ in range(3)]
        assert [process.end() for process in counting] == [0, 0, 0]
        assert coordinator.get("count") == "75"

    def test_after_a_leader_is_killed_another_leads_within_the_time_to_live(
        self, coordinator: Coordinator, surroundings: ProcessSurroundings
    ) -> None:
        leader = surroundings.start("campaign", "master", "old")
        assert {leader.says(), leader.says()} == {"campaigns", "leads"}
        election = Election(coordinator, "master", "new", surroundings.ttl)
        began: list[float] = []
        election.campaign(lambda leads: began.append(time.monotonic()) if leads else None)
        wait_until(lambda: election.candidates() == ["new", "old"])
        assert election.leader() == "old"
        killed = time.monotonic()
        leader.kill()
        wait_until(lambda: began)
        # Half as much again for a machine that is busy with other things.
        assert began[0] - killed < surroundings.ttl * 1.5
        assert election.leader() == "new"
        election.resign()

    def test_a_leader_that_was_frozen_finds_itself_replaced(
        self, coordinator: Coordinator, surroundings: ProcessSurroundings
    ) -> None:
        leader = surroundings.start("campaign", "master", "old")
        assert {leader.says(), leader.says()} == {"campaigns", "leads"}
        election = Election(coordinator, "master", "new", surroundings.ttl)
        election.campaign()
        leader.freeze()
        wait_until(lambda: election.leading)
        leader.thaw()
        assert leader.says() == "leads not"
        assert election.leading
        wait_until(lambda: election.candidates() == ["new", "old"])
        election.resign()
        assert leader.says() == "leads"
