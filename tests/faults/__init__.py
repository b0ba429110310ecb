"""Runs of every command that writes, killed at any write or short of room; what they leave is looked at."""
