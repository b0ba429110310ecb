"""Rules: how a prediction is served, how a label is judged, and what the judgement adds to the state."""
