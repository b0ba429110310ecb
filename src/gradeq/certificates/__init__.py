"""Certificates: what is exactly known of a run, and the bounds that are proven for it."""
