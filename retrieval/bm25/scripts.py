"""Words of all scripts, for the tokenizer ``words-2``: combining marks, and scripts without spaces.

A text is normalized (NFC) and lowercased. A word is a run of letters, digits and underscores, each
with its combining marks: vowel signs of Hindi and other Indic scripts, accents, tone marks. In
Chinese, Japanese, Thai, Lao, Khmer and Burmese no space separates words, and dictionaries differ, so
the terms are all pairs of neighboring characters (bigrams), and a character alone if it has no
neighbor. A character includes its combining marks.

Lucene's ``CJKAnalyzer`` also forms bigrams for Han and Kana. Lucene's analyzers for the other
scripts need dictionaries.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np

from qabench.retrieval.bm25.search import Array

# Blocks of the scripts without spaces. In them, letters and letter numbers are units of bigrams.
# Their digits, such as Thai digits, are parts of words, as in all scripts.
BLOCKS = (
    (0x0E00, 0x0E7F),  # Thai
    (0x0E80, 0x0EFF),  # Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # Han: iteration mark, closing mark, zero
    (0x3021, 0x3029),
    (0x3038, 0x303C),
    (0x3041, 0x30FF),  # Hiragana and Katakana, with the prolonged sound mark
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xA9E0, 0xA9FF),  # Burmese
    (0xAA60, 0xAA7F),
    (0xF900, 0xFAFF),  # Han
    (0xFF66, 0xFF9F),  # Halfwidth Katakana
    (0x1AFF0, 0x1B16F),  # Kana
    (0x20000, 0x3FFFF),  # Han
)
# The category "Me" is left out: a circle around a digit is not part of a number.
MARKS = ("Mn", "Mc")
# All marks above this code point are variation selectors.
LAST_MARK = 0x1FFFF
# The first and last of the parts of Korean syllables.
JAMO = ("\u1100", "\u11ff")
# The combining class of the sign that joins consonants.
VIRAMA = 9

OTHER, WORD, UNIT, MARK = range(4)
"""Classes of characters: separators, parts of words, parts of bigrams, and combining marks."""


@cache
def classes() -> Array:
    """Return the class of each code point. uint8."""
    table = np.zeros(0x110000, dtype=np.uint8)
    for code in range(LAST_MARK + 1):
        character = chr(code)
        if character.isalnum() or character == "_":
            table[code] = WORD
        elif unicodedata.category(character) in MARKS:
            table[code] = MARK
    table[0x20000:0x40000] = [
        WORD if chr(code).isalnum() else OTHER for code in range(0x20000, 0x40000)
    ]
    for first, last in BLOCKS:
        for code in (np.flatnonzero(table[first : last + 1] == WORD) + first).tolist():
            if unicodedata.category(chr(code)) != "Nd":
                table[code] = UNIT
    # Variation selectors belong to no word. See ``normalized``.
    table[0xFE00:0xFE10] = OTHER
    return table


# A quick test for variation selectors and joiners. ``_ignored`` matches the ones to remove.
IGNORED = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef\u200c\u200d]")


@cache
def _ignored() -> re.Pattern[str]:
    """Return a pattern for marks that only choose another form of the same letters: variation
    selectors, and joiners after a virama, the sign that joins consonants.
    """
    marks = np.flatnonzero(classes() == MARK).tolist()
    viramas = [code for code in marks if unicodedata.combining(chr(code)) == VIRAMA]
    joiners = f"(?<=[{''.join(map(chr, viramas))}])[\\u200c\\u200d]"
    return re.compile(f"[\\ufe00-\\ufe0f\\U000e0100-\\U000e01ef]|{joiners}")


def normalized(text: str) -> str:
    """Return a text in composed form and lowercase, without the marks that ``_ignored`` matches."""
    text = unicodedata.normalize("NFC", text).lower()
    return _ignored().sub("", text) if IGNORED.search(text) else text


def is_special(text: str) -> bool:
    """Tell whether a normalized text has combining marks, or scripts without spaces."""
    return bool(classes()[_codes(text)].max(initial=OTHER) >= UNIT)


def special_characters(codes: Array) -> str:
    """Return the characters that ``normalized`` or ``spaced`` may change, in one string.

    Args:
        codes: the code points of the characters to choose from.
    """
    characters = map(chr, codes.tolist())
    return "".join(filter(_is_special_character, characters))


def _is_special_character(character: str) -> bool:
    if classes()[ord(character)] >= UNIT or _ignored().match(character):
        return True
    if JAMO[0] <= character <= JAMO[1]:
        # NFC combines the parts of a syllable.
        return True
    return unicodedata.normalize("NFC", character) != character


def is_in_words(text: str) -> bool:
    """Tell whether no character of a text separates words."""
    return all(classes()[ord(character)] for character in text)


def spaced(texts: Sequence[str]) -> list[str]:
    """Return each normalized text as its terms, separated by spaces."""
    # One array has all texts, each followed by a line break, so that all characters are classified
    # at once.
    codes = _codes("\n".join([*texts, ""]))
    of_code = classes()[codes]
    text_ends = np.cumsum([len(text) + 1 for text in texts])

    # A mark belongs to the last character before it that is not a mark, and gets its class.
    of_base = of_code
    if (of_code == MARK).any():
        places = np.arange(len(codes), dtype=np.int32)
        bases = np.maximum.accumulate(np.where(of_code == MARK, np.int32(0), places))
        of_base = of_code[bases]
        # A mark at the start of the first text has no base.
        of_base[of_base == MARK] = OTHER
    if (of_code == UNIT).any():
        codes, text_ends = _with_bigrams(codes, of_code, of_base, text_ends)
    else:
        codes = np.where(of_base == OTHER, np.uint32(ord(" ")), codes)
    result = codes.tobytes().decode("utf-32-le", "surrogatepass")
    ends = text_ends.tolist()
    return [result[first:last] for first, last in pairwise([0, *ends])]


def _with_bigrams(
    codes: Array, of_code: Array, of_base: Array, text_ends: Array
) -> tuple[Array, Array]:
    """Return the code points of all terms, each with a space after it, and the new ends of texts.

    Args:
        codes: the code points of all texts.
        of_code: the class of each code point.
        of_base: as ``of_code``, except that a combining mark has the class of its base character.
        text_ends: the end of each text.
    """
    # A word is a run of characters of the class WORD.
    changes = np.flatnonzero(of_base[1:] != of_base[:-1]) + 1
    starts = np.append(0, changes).astype(np.int32)
    ends = np.append(changes, len(codes)).astype(np.int32)
    in_run = of_base[starts]
    words = in_run == WORD

    # A bigram goes from a character to the end of the next one, or only to its own end if the run
    # has a single character.
    units = np.flatnonzero(of_code == UNIT).astype(np.int32)
    run_ends = ends[in_run == UNIT]
    run_end = run_ends[np.searchsorted(run_ends, units, side="right")]
    following = np.append(units[1:], np.int32(len(codes)))
    after_following = np.append(following[1:], np.int32(len(codes)))
    is_last = following >= run_end
    is_first = np.append(True, is_last[:-1])
    # The last character of a run begins no bigram, unless the run has a single character.
    is_term = ~is_last | is_first
    starts = np.concatenate((starts[words], units[is_term]))
    ends = np.concatenate((ends[words], np.minimum(after_following, run_end)[is_term]))

    # Copy all terms in order, each with the character after it, which is replaced by a space.
    order = np.argsort(starts, kind="stable")
    starts = starts[order]
    sizes = ends[order] - starts + 1
    outs = np.append(0, np.cumsum(sizes))
    index = np.arange(outs[-1], dtype=np.int32)
    index += np.repeat((starts - outs[:-1]).astype(np.int32), sizes)
    terms = codes[index]
    terms[outs[1:] - 1] = ord(" ")
    return terms, outs[np.searchsorted(starts, text_ends)]


def _codes(text: str) -> Array:
    """Return the code points of a text. uint32."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
