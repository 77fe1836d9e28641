"""Rounds of score campaigns: questions asked, answers counted, searches moved on."""
