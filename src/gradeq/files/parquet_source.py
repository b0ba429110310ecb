"""Parquet read in batches of bounded size, whatever the size of its row groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gradeq.errors import BadInput

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ROWS = 1 << 17
_LARGE_GROUP = 256 << 20


class ParquetSource:
    """One Parquet file; its columns keep their types. ``position`` and ``size`` count rows."""

    def __init__(self, path: str) -> None:
        self.where = path
        self.position = 0
        with _opened(path) as file:
            self.schema: pa.Schema = file.schema_arrow
            self.rows: int | None = file.metadata.num_rows
        self.size: int = self.rows or 0

    def batches(self, columns: Sequence[str], file: str) -> Iterator[pa.RecordBatch]:
        """Record batches of these columns; ``file`` is not needed, nothing here fails by row."""
        import pyarrow as pa

        del file
        self.position = 0
        with _opened(self.where) as data:
            try:
                for batch in data.iter_batches(batch_size=ROWS, columns=list(columns)):
                    self.position += batch.num_rows
                    yield batch.select(list(columns))
            except (pa.ArrowException, OSError) as error:
                raise _refusal(self.where, error) from None


def _opened(path: str) -> pq.ParquetFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # Without pre-buffering whole row groups stay out of memory; a buffered stream does the
        # same for files that were written as one huge group, at some cost in speed.
        file = pq.ParquetFile(path, pre_buffer=False)
        meta = file.metadata
        if any(
            meta.row_group(i).total_byte_size > _LARGE_GROUP for i in range(meta.num_row_groups)
        ):
            file.close()
            file = pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
    except (pa.ArrowException, OSError) as error:
        raise _refusal(path, error) from None
    return file


def _refusal(path: str, error: Exception) -> BadInput:
    text = " ".join(str(error).split())
    if "magic bytes" in text or "smaller than" in text or "size is 0" in text:
        return BadInput(f"{path} is no whole Parquet file: not Parquet, or cut short; make it anew")
    return BadInput(f"{path} cannot be read as Parquet: {text[:200]}")
