"""Keys by their names into a fixed number of buckets: where the state of a key is, however Spark cuts its partitions.

The number of a bucket is CRC-32 of the key's name in UTF-8, modulo how many there are: the same in SQL, in Python and
in every version, since saved states rest on it.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

import pyarrow as pa

from gradeq.engine.checks import number
from gradeq.errors import BadInput
from gradeq.files.codebook import Codebook
from gradeq.naming import MISSING_NAME

BUCKETS = 256
MOST = 1 << 20


def checked_buckets(buckets: Any) -> int:
    """How many buckets, checked."""
    count = number(buckets, "buckets")
    if isinstance(buckets, bool) or count != int(count) or not 1 <= count <= MOST:
        raise BadInput(f"buckets={buckets!r}: give a whole number from 1 to {MOST:,}")
    return int(count)


def bucket_of(name: str, buckets: int) -> int:
    """The bucket of a key of this name.

    >>> bucket_of("shop 1", 256)
    221
    """
    return crc32(name.encode()) % buckets


def names_of(column: pa.Array) -> pa.Array:
    """The name of every key of an arrow column, as text: 7 and "7.0" are one."""
    book = Codebook()
    codes = book.codes(column)
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(book.names, pa.string())).cast(
        pa.string()
    )


def name_column(column: Any, kind: Any) -> Any:
    """The name of a key as a column of Spark; whole numbers need no Python for it."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    if isinstance(kind, T.IntegralType):
        return F.coalesce(column.cast("string"), F.lit(MISSING_NAME))
    return F.arrow_udf(names_of, "string")(column)


def bucket_column(name: Any, buckets: int) -> Any:
    """The bucket of a key with this name, as a column of Spark."""
    from pyspark.sql import functions as F

    return (F.crc32(name.cast("binary")) % F.lit(buckets)).cast("int")
