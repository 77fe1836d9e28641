"""Signing keys, encrypted at rest."""
