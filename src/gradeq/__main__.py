"""``python -m gradeq`` is the gradeq command."""

from gradeq.cli import main

main()
