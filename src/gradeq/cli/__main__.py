"""``python -m gradeq.cli`` is the gradeq command."""

from gradeq.cli import main

main()
