"""What the Hub sees: names registered on this machine, and repositories built for upload."""
