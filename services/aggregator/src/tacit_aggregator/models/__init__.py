"""Models that the operator registered for scoring features."""
