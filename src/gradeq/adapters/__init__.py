"""Layers in other libraries' clothes: scikit-learn estimators and river models (extras, imported by name)."""
