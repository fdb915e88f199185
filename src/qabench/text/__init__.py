"""Text: lemmatizers, repair of wrongly decoded text, and ROUGE."""

from __future__ import annotations

import functools
import re

from qabench.text.lemmatizers import Lemmatizer, resolve_lemmatizer

__all__ = ["Lemmatizer", "repair", "repaired", "resolve_lemmatizer"]
REPAIRED_TEXTS = 1 << 16
# In a line of ASCII, dashes and ellipses, ftfy can only change control characters (other than tab
# and newline) and HTML entities. Dashes and ellipses are signs of damage only next to other
# characters that are not ASCII. A carriage return before a line feed is deleted without ftfy, which
# takes 30 microseconds per line.
NOT_PLAIN = re.compile(r"[^\t\n\r\x20-\x25\x27-\x7e\u2013\u2014\u2026]|\r(?!\n)")


def repair(text: str) -> str:
    """Return ``ftfy.fix_text(text)``, skipping lines in which ftfy has nothing to change.

    ftfy repairs each line separately, with one exception: from the first line with a "<" on, it
    treats the text as HTML and does not change entities.
    """
    match = NOT_PLAIN.search(text)
    if match is None:
        return text.replace("\r\n", "\n")
    import ftfy

    markup = text.find("<")
    parts, done = [], 0
    while match is not None:
        start = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", match.start()) + 1 or len(text)
        unescape = False if 0 <= markup < start else "auto"
        parts += [
            text[done:start].replace("\r\n", "\n"),
            ftfy.fix_text(text[start:end], unescape_html=unescape),
        ]
        done = end
        match = NOT_PLAIN.search(text, end)
    parts.append(text[done:].replace("\r\n", "\n"))
    return "".join(parts)


repaired = functools.lru_cache(REPAIRED_TEXTS)(repair)
"""``repair`` with a cache: systems on the same corpus are scored on the same passages again and again."""
