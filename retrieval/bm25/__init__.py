"""BM25 indexes of dataset columns: building, search and storage."""
