"""Tacit at the site."""
