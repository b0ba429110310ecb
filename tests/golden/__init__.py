"""What the product does, recorded: values that may not change by a bit, and states that must load for ever."""
