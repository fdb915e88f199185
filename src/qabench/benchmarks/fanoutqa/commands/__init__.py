"""The commands ``qabench fanoutqa ...``."""
