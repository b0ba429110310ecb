"""A refusal that was raised inside a Spark job comes out as the one line that it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from gradeq import errors

# How a worker's traceback ends; Spark wraps it in the traces of two languages.
_RAISED = re.compile(r"^(?:[^\n]*: )?gradeq\.errors\.(\w+): ([^\n]+)$", re.MULTILINE)


@contextmanager
def refusals() -> Iterator[None]:
    """Whatever gradeq refuses inside a Spark job is raised here as its own error, in one line.

    Spark runs when somebody asks for rows, so a bad value in the data is found there: put this around ``count``,
    ``collect``, ``write`` or ``awaitTermination``. The methods of what ``adjust`` gives have it inside.
    """
    try:
        yield
    except errors.GradeqError:
        raise
    except Exception as error:
        found = refusal_in(str(error))
        if found is None:
            raise
        raise found from None


def refusal_in(text: str) -> errors.GradeqError | None:
    """The refusal that the text of another error tells of, or None.

    >>> refusal_in(
    ...     "Job aborted\\ngradeq.errors.BadInput: label 'x' is no number\\n\\tat org.apache"
    ... )
    BadInput("label 'x' is no number")
    """
    found = _RAISED.search(text)
    kind = None if found is None else getattr(errors, found[1], None)
    if found is None or not (isinstance(kind, type) and issubclass(kind, errors.GradeqError)):
        return None
    return kind(found[2].strip())
