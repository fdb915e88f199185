"""BM25 over columns of datasets: index, search, storage."""
