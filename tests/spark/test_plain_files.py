from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.spark.plain_files import FILE_SYSTEM


@pytest.fixture
def files(spark: SparkSession) -> Any:
    """Hadoop's file system for local files, as Spark has it."""
    jvm, context = spark._jvm, spark.sparkContext._jsc
    assert jvm is not None
    return jvm.org.apache.hadoop.fs.FileSystem.getLocal(context.hadoopConfiguration())


def test_permissions_of_local_files_are_left_alone(files: Any, spark: SparkSession, tmp_path: Path) -> None:
    assert files.getClass().getName() == FILE_SYSTEM
    hadoop: Any = spark._jvm.org.apache.hadoop  # type: ignore[union-attr]
    made = hadoop.fs.Path(str(tmp_path / "made"))
    files.create(made, True).close()
    readable = (tmp_path / "made").stat().st_mode & 0o777
    # Hadoop would start a process, `chmod 0600`.
    files.setPermission(made, hadoop.fs.permission.FsPermission("600"))
    assert (tmp_path / "made").stat().st_mode & 0o777 == readable != 0o600


def test_a_file_is_renamed_over_another(files: Any, spark: SparkSession, tmp_path: Path) -> None:
    hadoop: Any = spark._jvm.org.apache.hadoop.fs  # type: ignore[union-attr]
    for name in ("new", "old"):
        (tmp_path / name).write_text(name)
    assert files.rename(hadoop.Path(str(tmp_path / "new")), hadoop.Path(str(tmp_path / "old")))
    assert (tmp_path / "old").read_text() == "new"
    assert not (tmp_path / "new").exists()
