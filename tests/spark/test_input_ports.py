"""Custom code with several input ports."""

from __future__ import annotations

from typing import Any

CODE = """
from penstock import Bolt

class Tell(Bolt):
    def process(self, tup):
        if self.context.port == "orders":
            self.emit("orders", tup.id, tup.item)
        else:
            if tup.amount is None:
                raise ValueError("nothing paid")
            self.emit("payments", tup["id"], str(tup[1]))

def tell(tup, context):
    return {"port": context.port, "id": tup.id, "what": str(tup[1])}

class Remember(Bolt):
    def process(self, tup):
        seen = self.context.state.list("seen")
        seen.append(f"{self.context.port} {tup[1]}")
        self.emit(tup.id, list(seen))

class Together(Bolt):
    def process_epoch(self, orders, payments):
        self.emit(self.context.epoch, [tup.id for tup in orders], [tup.id for tup in payments])
"""

TOPOLOGY = """
topology: ports
epoch: {max_tuples: 4}
dead_letters: dead.jsonl
sources:
  orders:   {file: orders.jsonl, schema: "id int, item string"}
  payments: {file: payments.jsonl, schema: "id int, amount int, note string"}
operators:
  told:
    from: &both {orders: orders, payments: payments}
    custom: own:Tell
    emits: "port string, id int, what string"
    route: hash(id)
    parallelism: 2
    on_error: dead-letter
  function: {from: *both, custom: "own:tell", emits: "port string, id int, what string"}
  together: &synchronous
    from: *both
    custom: own:Together
    access: synchronous
    emits: "epoch bigint, orders array<int>, payments array<int>"
  divided:  {<<: *synchronous, route: hash(id), parallelism: 3}
  remembered: {from: *both, custom: "own:Remember", key: id, emits: "id int, seen array<string>"}
sinks:
  remembered: {from: remembered, file: remembered.jsonl}
  told:     {from: told, file: told.jsonl}
  function: {from: function, file: function.jsonl}
  together: {from: together, file: together.jsonl}
  divided:  {from: divided, file: divided.jsonl}
"""


def test_code_is_given_the_tuples_of_all_its_ports(project: Any) -> None:
    project.write("own.py", CODE)
    project.write("orders.jsonl", "".join(f'{{"id": {n}, "item": "i{n}"}}\n' for n in range(6)))
    project.write("payments.jsonl", '{"id": 1, "amount": 10}\n{"id": 2, "note": "?"}\n{"id": 3, "amount": 30}\n')
    project.run(project.topology(TOPOLOGY))

    orders = [("orders", number, f"i{number}") for number in range(6)]
    told = sorted(tuple(row.values()) for row in project.json_lines("told.jsonl"))
    assert told == [*orders, ("payments", 1, "10"), ("payments", 3, "30")]
    [dead] = project.json_lines("dead.jsonl")
    assert dead["tuple"] == {"id": 2, "amount": None, "note": "?"}
    function = sorted(tuple(row.values()) for row in project.json_lines("function.jsonl"))
    assert function == [*orders, ("payments", 1, "10"), ("payments", 2, "None"), ("payments", 3, "30")]

    remembered = sorted(project.json_lines("remembered.jsonl"), key=lambda row: len(row["seen"]))
    longest = {row["id"]: row["seen"] for row in remembered}
    assert longest == {0: ["orders i0"], 1: ["orders i1", "payments 10"], 2: ["orders i2", "payments None"],
                       3: ["orders i3", "payments 30"], 4: ["orders i4"], 5: ["orders i5"]}

    together = sorted(tuple(row.values()) for row in project.json_lines("together.jsonl"))
    assert together == [(1, [0, 1, 2, 3], [1, 2, 3]), (2, [4, 5], [])]
    divided = project.json_lines("divided.jsonl")
    for row in divided:
        assert set(row["payments"]) <= set(row["orders"])  # those of one id have met
        assert row["orders"] == sorted(row["orders"])
    assert sorted(number for row in divided for number in row["orders"]) == list(range(6))
