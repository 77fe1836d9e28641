"""Campaigns: their documents, their states, and who may see them."""
