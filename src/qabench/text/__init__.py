"""Text: lemmatizers, repair of wrongly decoded text, and ROUGE."""

from qabench.text.lemmatizers import Lemmatizer, resolve_lemmatizer

__all__ = ["Lemmatizer", "resolve_lemmatizer"]
