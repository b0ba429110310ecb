"""Ways to track a threshold that scores stay under with a given frequency, written from their papers.

Each takes the scores of a stream in order and gives the threshold that was in force before each of them.
"""
