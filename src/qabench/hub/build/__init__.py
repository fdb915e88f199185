"""Builds dataset repositories for the Hub, and registers datasets and metrics in the local caches."""
