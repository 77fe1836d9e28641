"""Thresholds: computed from the sketches, signed, fetched."""
