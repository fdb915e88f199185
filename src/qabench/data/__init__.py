"""Data: rows of source files, files of predictions, ``load_dataset``."""
