"""What a model did on a benchmark, read from the log of a run: records of answers, and the figures over them."""
