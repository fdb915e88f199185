"""Publishing datasets and metrics to the Hub."""
