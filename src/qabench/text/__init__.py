"""Text normalisation: the official FanOutQA normaliser, its lemmatisers and the cache of normalised texts."""

from qabench.text.lemmatizers import Lemmatizer, resolve_lemmatizer
from qabench.text.normalize import Normalizer, normalize

__all__ = ["Lemmatizer", "Normalizer", "normalize", "resolve_lemmatizer"]
