"""Runs of models over benchmarks: starting and resuming them, and reading their logs."""
