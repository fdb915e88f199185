"""The retrieval study of fastbook-benchmark: chunks, queries, methods, scores, run files and a picture."""
