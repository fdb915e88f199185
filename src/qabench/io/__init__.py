"""Files, HTTP, caches, processes, the terminal and the environment."""
