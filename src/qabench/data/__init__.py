"""Data: pinned source files and their rows, answers, and files of predictions."""
