"""Prompts: templates with named fields, and prompts read from the benchmark authors' source files."""
