"""Tokens: who may speak to this server, and for whom."""
