from __future__ import annotations

from penstock.errors import MalformedRecord, OperatorError
from penstock.spark.faults import WorkerFault, fault_in


def test_a_fault_is_found_again_in_the_middle_of_a_stack_trace() -> None:
    fault = WorkerFault("operator", "operator 'split' raised KeyError: 'x'\n  tuple: (a={1: '}'})")
    found = fault_in(f"org.apache.spark.SparkException: …\n{fault}\n\tat java.lang.Thread.run")
    assert isinstance(found, OperatorError)
    assert str(found) == "operator 'split' raised KeyError: 'x'\n  tuple: (a={1: '}'})"


def test_the_kind_of_error_survives() -> None:
    assert isinstance(fault_in(str(WorkerFault("malformed", "bad"))), MalformedRecord)


def test_other_text_holds_no_fault() -> None:
    assert fault_in("java.lang.OutOfMemoryError") is None
