"""The scores: pure functions from texts and arrays to numbers, shared by every front end."""
