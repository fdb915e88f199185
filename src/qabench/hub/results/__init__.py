"""Scores of models as entries of the Hub."""
