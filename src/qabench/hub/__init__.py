"""What goes to the Hub: repositories of datasets and metrics, and scores for models' pages.

The Hub names can also be registered on this machine, for use without the Hub.
"""
