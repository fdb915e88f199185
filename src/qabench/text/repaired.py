"""``ftfy.fix_text`` with a cache: systems on the same corpus are scored on the same passages again and again."""

from __future__ import annotations

import re
import threading

from qabench.errors import InputError

MAX_CHARACTERS = 64_000_000
# In a line of ASCII, dashes and ellipses, ftfy can only change control characters (other than tab and newline) and HTML
# entities. Dashes and ellipses are signs of damage only next to other characters that are not ASCII.
# A carriage return before a line feed is deleted without ftfy, which takes 30 microseconds per line.
NOT_PLAIN = re.compile(r"[^\t\n\r\x20-\x25\x27-\x7e\u2013\u2014\u2026]|\r(?!\n)")


def repair(text: str) -> str:
    """Return ``ftfy.fix_text(text)``, skipping lines in which ftfy has nothing to change.

    ftfy repairs each line separately, with one exception: from the first line with a "<" on, it treats the text as
    HTML and does not change entities.
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
        parts += [text[done:start].replace("\r\n", "\n"), ftfy.fix_text(text[start:end], unescape_html=unescape)]
        done = end
        match = NOT_PLAIN.search(text, end)
    parts.append(text[done:].replace("\r\n", "\n"))
    return "".join(parts)


class RepairedTexts:
    """``repair`` with a cache: ``ftfy.fix_text(text)``, computed once per text.

    Thread-safe. The oldest texts are evicted first.

    Args:
        max_characters: the size of the cache in characters of repaired text; a longer text is repaired each time.

    Raises:
        InputError: a negative ``max_characters``.
    """

    def __init__(self, max_characters: int = MAX_CHARACTERS) -> None:
        if max_characters < 0:
            raise InputError(f"max_characters is {max_characters}; allowed: 0 (no cache) or more")
        self.max_characters = max_characters
        self.characters = 0
        self._forms: dict[str, str] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._forms)

    def __call__(self, text: str) -> str:
        """Return the text as ``ftfy.fix_text`` repairs it."""
        form = self._forms.get(text)
        if form is None:
            form = repair(text)
            self._store(text, form)
        return form

    def _store(self, text: str, form: str) -> None:
        with self._lock:
            if len(form) > self.max_characters or text in self._forms:
                return
            self._forms[text] = form
            self.characters += len(form)
            while self.characters > self.max_characters:
                oldest = next(iter(self._forms))
                self.characters -= len(self._forms.pop(oldest))
