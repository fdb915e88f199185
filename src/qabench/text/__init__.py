"""Text normalization: the official FanOutQA normalizer, its lemmatizers and the cache of normalized strings."""

from qabench.text.lemmatizers import Lemmatizer, resolve_lemmatizer
from qabench.text.normalize import Normalizer, normalize

__all__ = ["Lemmatizer", "Normalizer", "normalize", "resolve_lemmatizer"]
