"""A Spark session of its own for tests, or the reason why there can be none."""

import os
import shutil
import warnings
from importlib.util import find_spec
from typing import Any

# PySpark 4.3 says so wherever pandas 3 is installed; nothing of gradeq gives pandas to Spark.
PANDAS = "ignore:PySpark does not yet fully support pandas:FutureWarning"

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # a JVM that lives for seconds


def missing() -> str | None:
    """Why no Spark can be had here, or None."""
    if find_spec("pyspark") is None:
        return 'PySpark is not installed: pip install "gradeq[spark]"'
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        return "Spark needs Java 17, and there is no java here"
    return None


def started(**settings: Any) -> Any:
    """A session on two cores that keeps its log to itself."""
    from gradeq.spark import session

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spark = session(2, spark_driver_extraJavaOptions=QUICK, **settings)
    spark.sparkContext.setLogLevel("OFF")
    return spark
