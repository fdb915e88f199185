"""Scores of models as entries of ``.eval_results``, which the Hub shows on a model's page."""
