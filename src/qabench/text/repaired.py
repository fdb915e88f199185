"""Texts repaired once for all who ask: systems over one corpus are scored on the same passages again and again."""

from __future__ import annotations

import threading

from qabench.errors import InputError
from qabench.text.normalize import repair

MAX_CHARACTERS = 64_000_000


class RepairedTexts:
    """``repair`` with a memory: called with a text it gives ``ftfy.fix_text(text)``, worked out once a text.

    Safe to share between threads. The oldest texts are forgotten first.

    Args:
        max_characters: how many characters of repaired text are kept at most; a longer text is repaired each time.

    Raises:
        InputError: a negative ``max_characters``.
    """

    def __init__(self, max_characters: int = MAX_CHARACTERS) -> None:
        if max_characters < 0:
            raise InputError(f"max_characters is {max_characters}; allowed: 0 (keep nothing) or more")
        self.max_characters = max_characters
        self.characters = 0
        self._forms: dict[str, str] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._forms)

    def __call__(self, text: str) -> str:
        """The text as ``ftfy.fix_text`` repairs it."""
        form = self._forms.get(text)
        if form is None:
            form = repair(text)
            self._keep(text, form)
        return form

    def _keep(self, text: str, form: str) -> None:
        with self._lock:
            if len(form) > self.max_characters or text in self._forms:
                return
            self._forms[text] = form
            self.characters += len(form)
            while self.characters > self.max_characters:
                oldest = next(iter(self._forms))
                self.characters -= len(self._forms.pop(oldest))
