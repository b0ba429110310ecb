"""Layers as scikit-learn estimators and as river models (optional extras; import the submodule you need)."""
