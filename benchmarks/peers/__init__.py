"""What a user would pick instead of gradeq, doing the same work: ``make bench-peers``.

One file for each package (``by_river`` and so on) says how it does each task; ``worker`` is a process that does one
of them; ``race`` lets all systems of a task run in turn and compares what they serve.
"""
