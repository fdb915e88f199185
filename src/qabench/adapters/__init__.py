"""The four ways to score a benchmark, written once for all: files, Inspect tasks, metrics, lm-evaluation-harness.

Each adapter makes items, passes them to the benchmark's scorer, and presents the outcomes in its
own format.
"""
