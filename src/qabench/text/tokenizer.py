"""spaCy's tokenizer in linear time: the same tokens, even for a text without spaces.

The tokenizer removes prefixes and suffixes from each run of characters between spaces, one at a
time. Each time, spaCy searches the whole rest of the run, so 8,000 quotation marks took 7 seconds.
Here, the tokenizer looks at both ends only, and a run that is much longer than a word or an address
is cut into pieces.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

# The longest run of characters without a space in the benchmarks' texts has 663 characters.
MAX_RUN = 1_000
# The only suffix that can be longer is a run of periods.
MAX_SUFFIX = 32
LONG_RUN = re.compile(rf"\S{{{MAX_RUN + 1},}}")


class LinearTokenizer:
    """A spaCy tokenizer that cuts long runs of characters without a space.

    Runs of more than ``MAX_RUN`` characters are cut, unless they have only letters and digits. All
    other texts get the same tokens as from spaCy's tokenizer, which also provides all attributes
    that are not defined here.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def __getattr__(self, name: str) -> Any:
        # While an object is copied or unpickled, ``tokenizer`` is not set yet.
        if name == "tokenizer":
            raise AttributeError(name)
        return getattr(self.tokenizer, name)

    def __call__(self, text: str) -> Any:
        cuts: list[int] = []
        for run in LONG_RUN.finditer(text):
            # Runs of letters and digits have neither prefixes nor suffixes, so spaCy is fast on
            # them.
            if not run[0].isalnum():
                cuts += range(run.start() + MAX_RUN, run.end(), MAX_RUN)
        if not cuts:
            return self.tokenizer(text)
        from spacy.tokens import Doc

        words: list[str] = []
        spaces: list[bool] = []
        for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
            for token in self.tokenizer(text[start:end]):
                words.append(token.text)
                spaces.append(bool(token.whitespace_))
        return Doc(self.tokenizer.vocab, words=words, spaces=spaces)


def with_linear_tokenizer(pipeline: Any) -> Any:
    """Return a spaCy pipeline with a tokenizer that takes linear time.

    The search for prefixes (or for suffixes) is replaced only if it has the rules of the pipeline's
    language.
    """
    from spacy.tokenizer import Tokenizer
    from spacy.util import compile_prefix_regex, compile_suffix_regex

    tokenizer = pipeline.tokenizer
    if type(tokenizer) is not Tokenizer:
        return pipeline
    prefixes = compile_prefix_regex(pipeline.Defaults.prefixes)
    suffixes = compile_suffix_regex(pipeline.Defaults.suffixes)
    if _pattern_of(tokenizer.prefix_search) == prefixes.pattern:
        # Each prefix pattern begins with ^, so only a match at the start is possible.
        tokenizer.prefix_search = prefixes.match
    if _pattern_of(tokenizer.suffix_search) == suffixes.pattern:
        tokenizer.suffix_search = _search_at_end(suffixes)
    pipeline.tokenizer = LinearTokenizer(tokenizer)
    return pipeline


def _pattern_of(method: Any) -> str | None:
    """Return the compiled pattern that a bound method belongs to, or None."""
    return getattr(getattr(method, "__self__", None), "pattern", None)


def _search_at_end(suffixes: re.Pattern[str]) -> Callable[[str], re.Match[str] | None]:
    """Return a search for suffixes that starts shortly before a text's end or final periods."""

    def search(text: str) -> re.Match[str] | None:
        # A run of periods is the only suffix of unlimited length, so the search starts before it.
        return suffixes.search(text, max(0, len(text.rstrip(".")) - MAX_SUFFIX))

    return search
