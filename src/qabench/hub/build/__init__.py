"""Dataset repositories and metrics for the Hub: building them, and registering them in the local cache."""
