from __future__ import annotations

import os
import platform

import pytest

from penstock.bench.machine import Machine, kernel, processor_in, this_machine


def test_the_model_of_the_processor_is_read_where_there_is_one() -> None:
    listing = "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some(R)  CPU @ 2.60GHz\nmodel name\t: Other\n"
    assert processor_in(listing) == "Some(R) CPU @ 2.60GHz"
    assert processor_in("processor : 0\nFeatures : fp\n") == platform.machine()


@pytest.mark.parametrize(("name", "release", "said"), [
    ("Linux", "6.1.0-18-cloud-amd64", "Linux 6.1"), ("Darwin", "23.4.0", "Darwin 23.4"), ("Linux", "", "Linux"),
])
def test_a_kernel_is_told_without_what_others_add_to_its_version(name: str, release: str, said: str) -> None:
    assert kernel(name, release) == said


def test_a_machine_is_told_in_words() -> None:
    machine = Machine(2, "A CPU", 7.84, "Linux 6.1", "3.11.7", "Java 17", "4.3.0", "0.1.0")
    assert str(machine) == (
        "2 cores (A CPU), 7.8 GB of memory, Linux 6.1, Python 3.11.7, Java 17, Spark 4.3.0, Penstock 0.1.0")


def test_this_machine_is_described_by_what_it_has() -> None:
    found = this_machine()
    assert found.cores == os.cpu_count()
    assert found.memory_gb > 0.1
    assert found.system.startswith(platform.system())
    assert platform.node() not in str(found)
