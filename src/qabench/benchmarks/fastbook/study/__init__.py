"""The retrieval experiment of fastbook-benchmark: chunks, queries, methods, scores and a plot."""
