"""The commands of ``qabench expertqa``."""
