"""Input and output: files, HTTP, caches, processes, the terminal and environment variables."""
