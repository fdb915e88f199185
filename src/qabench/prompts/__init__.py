"""Prompts of this project (``prompt``), and those in the authors' Python files (``authors``)."""
