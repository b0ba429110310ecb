"""The engine: tickets, steps, state, one event at a time or whole columns, with the same bits.

A *head* turns a prediction and a sparse row into a served value and learns from a label (``margin``, ``levels``,
``mix``). The *desk* keeps the tickets between the two, counts what is in flight and sets the step. Late, missing
and unordered labels are the desk's business alone; a head only sees "serve" and "post".
"""
