"""A Spark session on this machine, with the settings that gradeq needs; and what is missing, in one line."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gradeq.errors import BadInput, missing_extra

STORE = "spark.sql.streaming.stateStore"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def check_spark() -> None:
    """Refuse to go on where PySpark is not installed."""
    if find_spec("pyspark") is None:
        raise missing_extra("spark", "layers on Spark")


def session(cores: int = 2, **settings: Any) -> Any:
    """A local Spark session on so many cores; further settings by their names, dots as underscores.

    Streams need the RocksDB state store, which this sets; on a cluster set ``stream_settings()`` yourself.
    """
    check_spark()
    java = os.environ.get("JAVA_HOME")
    if not (java and (Path(java) / "bin" / "java").exists()) and shutil.which("java") is None:
        raise BadInput(
            "no Java was found, which Spark needs; install Java 17 (Debian: openjdk-17-jre-headless) or set JAVA_HOME"
        )
    # Workers are started by name: without this they may be another Python than the one that runs.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    own = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **stream_settings(),
        **{name.replace("_", "."): str(value) for name, value in settings.items()},
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName("gradeq")
    for name, value in own.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def stream_settings() -> dict[str, str]:
    """The settings of a session in which ``follow`` works."""
    return {
        f"{STORE}.providerClass": ROCKSDB,
        f"{STORE}.rocksdb.changelogCheckpointing.enabled": "true",
    }
