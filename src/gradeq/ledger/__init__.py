"""The values that everything rests on: a ticket is what serving leaves behind, a posting what a label adds.

The state of a layer is a plain sum of postings, so late labels, corrections, journals and merging need nothing more.
"""
