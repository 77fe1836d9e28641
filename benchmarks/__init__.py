"""Benchmarks: each prints a table for people and, with `--json`, one line for programs."""
