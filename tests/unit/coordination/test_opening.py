from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.coordination.opening import open_coordinator
from penstock.coordination.sqlite import SqliteCoordinator
from penstock.errors import CoordinationError, TopologyError


@pytest.mark.parametrize("slashes", ["", "//"])
def test_sqlite_is_opened_by_its_path(tmp_path: Path, slashes: str) -> None:
    coordinator = open_coordinator(f"sqlite:{slashes}{tmp_path}/new folder/c.sqlite")
    coordinator.put("k", "v")
    assert SqliteCoordinator(tmp_path / "new folder/c.sqlite").get("k") == "v"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "write sqlite:/path/to/file or zookeeper://"),
        ("etcd://host:1/x", "'etcd://host:1/x' is no coordinator"),
        ("/some/file", "is no coordinator"),
        ("sqlite:", "names no file"),
        ("sqlite:///", "names no file"),
        ("zookeeper:host:2181/x", "no proper addresses"),
        ("zookeeper://", "no proper addresses"),
        ("zookeeper://host/x", "no proper addresses"),
        ("zookeeper://one:2181,two/x", "no proper addresses"),
        ("zookeeper://host:port/x", "no proper addresses"),
        ("zookeeper://host:2181", "names no root.*zookeeper://host:2181/penstock"),
        ("zookeeper://host:2181/", "names no root"),
        ("zookeeper://host:2181/a//b", "names no root"),
        ("zookeeper://host:2181/a/../b", "names no root"),
    ],
)
def test_a_url_that_makes_no_sense_is_refused_with_what_would(url: str, said: str) -> None:
    with pytest.raises(TopologyError, match=said):
        open_coordinator(url)


def test_a_file_that_cannot_be_made_is_an_error_of_the_coordinator(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CoordinationError, match="check that the folder exists"):
        open_coordinator(f"sqlite:{tmp_path}/file/c.sqlite")


def test_who_uses_sqlite_does_not_pay_for_zookeeper(tmp_path: Path) -> None:
    program = (
        "import sys; from penstock.coordination.opening import open_coordinator; "
        f"open_coordinator('sqlite:{tmp_path}/c.sqlite'); print('kazoo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
