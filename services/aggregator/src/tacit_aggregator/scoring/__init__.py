"""Counting what was accepted: scoring in worker processes, folding, erasing, closing."""
