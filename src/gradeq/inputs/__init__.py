"""What comes in: names, durations and single values, checked once."""
