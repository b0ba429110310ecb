"""Arrow and numpy share bytes: the same values, in any slice, without importing pandas."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradeq.files import Clock, numeric
from gradeq.files.cells import floats, from_numpy, integers, texts, to_numpy, valid, with_nulls

numbers = st.lists(st.one_of(st.none(), st.integers(-100, 100)), max_size=40)
edges = st.tuples(st.integers(0, 40), st.integers(0, 40))


@given(numbers, edges)
def test_a_slice_of_a_column_has_its_own_values(cells: list[int | None], edge: tuple[int, int]) -> None:
    start, size = edge
    part = cells[start : start + size]
    present = [cell is not None for cell in part]
    for kind in (pa.float64(), pa.int64(), pa.int32()):
        column = pa.array(cells, kind).slice(start, size)
        assert valid(column).tolist() == present
        assert to_numpy(column)[present].tolist() == [cell for cell in part if cell is not None]
        if kind != pa.float64():
            assert integers(column, -1).tolist() == [-1 if c is None else c for c in part]
    column = pa.array(cells, pa.float64()).slice(start, size)
    expected = np.array([np.nan if cell is None else cell for cell in part])
    np.testing.assert_array_equal(floats(column), expected)
    spelled = pa.array(["NA" if cell is None else f" {cell}" for cell in cells])
    np.testing.assert_array_equal(numeric(spelled.slice(start, size), "y", missing=True), expected)
    times = Clock("t").read(spelled.slice(start, size), missing=True)
    assert times.missing.tolist() == [not here for here in present]
    assert times.values[~times.missing].tolist() == [c for c in part if c is not None]


@given(st.lists(st.booleans(), max_size=40), edges)
def test_bits_are_read_from_any_place(cells: list[bool], edge: tuple[int, int]) -> None:
    start, size = edge
    column = pa.array(cells, pa.bool_()).slice(start, size)
    assert to_numpy(column).tolist() == cells[start : start + size]


@given(st.lists(st.floats(), max_size=20))
def test_numpy_columns_become_arrow_columns(cells: list[float]) -> None:
    values = np.array(cells, np.float64)
    column = from_numpy(values, ~np.isnan(values))
    column.validate(full=True)
    assert column.to_pylist() == [None if cell != cell else cell for cell in cells]
    assert from_numpy(np.arange(len(cells))).to_pylist() == list(range(len(cells)))


@given(st.lists(st.text(max_size=5), max_size=20), edges)
def test_text_columns_are_made_and_blanked(cells: list[str], edge: tuple[int, int]) -> None:
    column = texts(cells)
    column.validate(full=True)
    assert column.to_pylist() == cells
    start, size = edge
    part = cells[start : start + size]
    absent = np.array([len(cell) < 2 for cell in part], bool)
    blank = with_nulls(column.slice(start, size), absent)
    blank.validate(full=True)
    assert blank.to_pylist() == [None if len(cell) < 2 else cell for cell in part]


def test_files_are_read_and_written_without_importing_pandas(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    (tmp_path / "in.csv").write_text('f,y,t,g,k\n1,NA,2024-01-02,"a,b",7\n2,3,2024-01-01,,8\n')
    code = (
        "import sys, numpy as np\nfrom gradeq.files import *\n"
        "def run(source, target):\n"
        "    table, book, clock = open_table([source]), Codebook(), Clock('t')\n"
        "    with Writer(target, table.schema, {target: float}, inputs=table.paths) as out:\n"
        "        for chunk in table.batches():\n"
        "            chunk.numbers('y', missing=True), chunk.read_times(clock)\n"
        "            book.codes(chunk.batch.column('g')), book.codes(chunk.batch.column('k'))\n"
        "            out.write(chunk.batch, {target: chunk.numbers('f')})\n"
        "    with sorted_by_time(table, clock, ['f'], memory=1) as parts: list(parts)\n"
        "run('in.csv', 'out.parquet')\nrun('in.csv', 'out.csv.gz')\nrun('out.parquet', 'new.csv')\n"
    )
    code += "print([m for m in ('pandas', 'narwhals', 'scipy') if m in sys.modules])\n"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
