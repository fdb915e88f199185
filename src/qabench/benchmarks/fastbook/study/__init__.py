"""The retrieval study of fastbook-benchmark: chunks, queries, methods, scores and a plot."""
