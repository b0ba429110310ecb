"""The layers: what users put on top of a prediction, each with the same verbs."""
