"""spaCy's tokenizer in linear time: the same tokens, also for a text without spaces.

The tokenizer removes prefixes and suffixes from each run of characters between spaces, one at a time. It
searches the whole rest of the run each time, so 8,000 quotation marks took 7 seconds. Here, it looks at both
ends only, and a run that is much longer than a word or an address is cut into pieces.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

LONGEST_RUN = 1_000  # characters without a space. The longest one in the benchmarks' texts has 663
# characters of a suffix. Only a run of full stops can be longer
LONGEST_SUFFIX = 32
LONG_RUN = re.compile(rf"\S{{{LONGEST_RUN + 1},}}")


class LinearTokenizer:
    """A tokenizer of spaCy that is given runs of at most ``LONGEST_RUN`` characters, or of letters and digits only.

    All other texts have the tokens of spaCy's tokenizer. Attributes that are not here are its own.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def __getattr__(self, name: str) -> Any:
        if name == "tokenizer":  # not yet set, while a copy is made
            raise AttributeError(name)
        return getattr(self.tokenizer, name)

    def __call__(self, text: str) -> Any:
        ends: list[int] = []
        for run in LONG_RUN.finditer(text):
            if not run[0].isalnum():  # letters and digits alone are neither prefixes nor suffixes
                ends += range(run.start() + LONGEST_RUN, run.end(), LONGEST_RUN)
        if not ends:
            return self.tokenizer(text)
        from spacy.tokens import Doc

        words: list[str] = []
        spaces: list[bool] = []
        for start, end in zip([0, *ends], [*ends, len(text)], strict=True):
            for token in self.tokenizer(text[start:end]):
                words.append(token.text)
                spaces.append(bool(token.whitespace_))
        return Doc(self.tokenizer.vocab, words=words, spaces=spaces)


def with_linear_tokenizer(pipeline: Any) -> Any:
    """Return a spaCy pipeline, whose tokenizer is made linear if it has the rules of its language."""
    from spacy.tokenizer import Tokenizer
    from spacy.util import compile_prefix_regex, compile_suffix_regex

    tokenizer = pipeline.tokenizer
    if type(tokenizer) is not Tokenizer:
        return pipeline
    defaults = pipeline.Defaults
    prefixes, suffixes = compile_prefix_regex(defaults.prefixes), compile_suffix_regex(defaults.suffixes)
    if _pattern_of(tokenizer.prefix_search) == prefixes.pattern:
        tokenizer.prefix_search = prefixes.match  # each prefix begins with ^
    if _pattern_of(tokenizer.suffix_search) == suffixes.pattern:
        tokenizer.suffix_search = _search_at_end(suffixes)
    pipeline.tokenizer = LinearTokenizer(tokenizer)
    return pipeline


def _pattern_of(method: Any) -> str | None:
    """Return the pattern of which a function is a method, or None."""
    return getattr(getattr(method, "__self__", None), "pattern", None)


def _search_at_end(suffixes: re.Pattern[str]) -> Callable[[str], re.Match[str] | None]:
    """Return a search for suffixes that begins a few characters before the end, or before its full stops."""

    def search(text: str) -> re.Match[str] | None:
        # The suffix of two or more full stops is the only one of any length.
        return suffixes.search(text, max(0, len(text.rstrip(".")) - LONGEST_SUFFIX))

    return search
