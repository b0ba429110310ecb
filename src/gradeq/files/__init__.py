"""Tables in files: read and written in bounded memory, cells unchanged, outputs whole or absent.

    table = open_table(["in.csv"])                    columns, kinds, batches
    with Writer("out.csv", table.schema, {"adjusted": float}, inputs=table.paths) as out:
        for chunk in table.batches():
            f = chunk.numbers("prediction")           float64, or an error that names the row
            y = chunk.numbers("label", missing=True)  nan where there is no label
            out.write(chunk.batch, {"adjusted": f})

Codebook turns names into dense codes, Clock reads times, sorted_by_time and Scatter process rows
by time and put results back in file order, atomic writes any other file whole or not at all.
"""

from gradeq.files.cells import guard_formula, is_missing, numeric
from gradeq.files.codebook import Codebook
from gradeq.files.ordering import Scatter, in_time_order, sorted_by_time
from gradeq.files.paths import OutputFiles, atomic, check_output, write_text
from gradeq.files.table import Chunk, Table, open_table
from gradeq.files.times import Clock, Times
from gradeq.files.writer import Writer, kinds_of
from gradeq.inputs.arguments import MISSING_NAME

__all__ = [
    "MISSING_NAME", "Chunk", "Clock", "Codebook", "Scatter", "Table", "Times", "OutputFiles", "Writer",
    "atomic", "check_output", "guard_formula", "in_time_order", "is_missing", "kinds_of", "numeric",
    "open_table", "sorted_by_time", "write_text",
]  # fmt: skip
