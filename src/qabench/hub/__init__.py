"""Names of the Hub registered on this machine, repositories for the Hub, and scores for models' pages."""
