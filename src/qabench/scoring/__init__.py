"""Scores: pure functions from strings and arrays to numbers, shared by all interfaces."""
