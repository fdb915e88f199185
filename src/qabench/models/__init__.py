"""Scores computed by neural networks on this machine. ``models`` loads them, ``batches`` feeds them."""
