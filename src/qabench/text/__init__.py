"""Text: lemmatizers, repair of wrongly decoded text, and ROUGE."""

from __future__ import annotations

import functools
import re

from qabench.text.lemmatizers import Lemmatizer, resolve_lemmatizer

__all__ = ["Lemmatizer", "repair", "repaired", "resolve_lemmatizer"]
# Passages and contexts repeat between questions, and ftfy is slow.
REPAIRED_TEXTS = 1 << 16
# If a text has only ASCII characters, dashes and ellipses, ftfy can only change control characters
# (other than tab and newline) and HTML entities. Dashes and ellipses are signs of damage only next
# to other characters that are not ASCII. ftfy deletes a carriage return before a line feed.
NOT_PLAIN = re.compile(r"[^\t\n\r\x20-\x25\x27-\x7e\u2013\u2014\u2026]|\r(?!\n)")


def repair(text: str) -> str:
    """Return ``ftfy.fix_text(text)``, without ftfy if it has nothing to change."""
    if NOT_PLAIN.search(text) is None:
        return text.replace("\r\n", "\n")
    import ftfy

    fixed: str = ftfy.fix_text(text)
    return fixed


# Systems on the same corpus are scored on the same passages again and again.
repaired = functools.lru_cache(REPAIRED_TEXTS)(repair)
