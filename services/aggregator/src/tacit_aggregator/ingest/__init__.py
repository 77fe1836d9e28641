"""Uploads: checked, stored exactly once, acknowledged."""
