"""Words of all scripts, for the tokenizer ``words-2``: combining marks, and scripts without spaces.

A text is normalized (NFC) and lowercased. A word is a run of letters, digits and underscores, each
with its combining marks: vowel signs of Hindi and other Indic scripts, accents, tone marks. In
Chinese, Japanese, Thai, Lao, Khmer and Burmese no space separates words, and dictionaries differ, so
the terms are all pairs of neighboring characters (bigrams), and a character alone if it has no
neighbor. A character includes its combining marks.

Bigrams: Lucene's ``CJKAnalyzer`` has them for Han and Kana. Its analyzers for the others need
dictionaries.
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
# Digits, such as the Thai ones, are in words as everywhere.
BLOCKS = (
    (0x0E00, 0x0E7F),  # Thai
    (0x0E80, 0x0EFF),  # Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # Han: iteration mark, closing mark, zero
    (0x3021, 0x3029),
    (0x3038, 0x303C),
    (0x3041, 0x30FF),  # Hiragana and Katakana, with the sign of long vowels
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xA9E0, 0xA9FF),  # Burmese
    (0xAA60, 0xAA7F),
    (0xF900, 0xFAFF),  # Han
    (0xFF66, 0xFF9F),  # Katakana of half width
    (0x1AFF0, 0x1B16F),  # Kana
    (0x20000, 0x3FFFF),  # Han
)
# Not "Me": a circle around a digit is not a part of a number.
MARKS = ("Mn", "Mc")
# Above it, the only marks are variation selectors.
LAST_MARK = 0x1FFFF
# The parts of Korean syllables.
JAMO = ("\u1100", "\u11ff")
# The combining class of the sign that joins consonants.
VIRAMA = 9

OTHER, WORD, UNIT, MARK = range(4)
"""Classes of characters: in no word, in words, in bigrams, and part of the character before."""


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


# Variation selectors and joiners. ``_ignored`` finds those of them that ``normalized`` removes.
IGNORED = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef\u200c\u200d]")


@cache
def _ignored() -> re.Pattern[str]:
    """Return a pattern of marks that only choose another form of the same letters."""
    marks = np.flatnonzero(classes() == MARK).tolist()
    viramas = [code for code in marks if unicodedata.combining(chr(code)) == VIRAMA]
    joiners = f"(?<=[{''.join(map(chr, viramas))}])[\\u200c\\u200d]"
    return re.compile(f"[\\ufe00-\\ufe0f\\U000e0100-\\U000e01ef]|{joiners}")


def normalized(text: str) -> str:
    """Return a text in composed form and lower case, without variation selectors."""
    text = unicodedata.normalize("NFC", text).lower()
    return _ignored().sub("", text) if IGNORED.search(text) else text


def is_special(text: str) -> bool:
    """Tell whether a normalized text has combining marks, or scripts without spaces."""
    return bool(classes()[_codes(text)].max(initial=OTHER) >= UNIT)


def special_characters(codes: Array) -> str:
    """Return the characters with these codes that ``normalized`` or ``spaced`` may change."""
    characters = map(chr, codes.tolist())
    return "".join(filter(_is_special_character, characters))


def _is_special_character(character: str) -> bool:
    if classes()[ord(character)] >= UNIT or _ignored().match(character):
        return True
    if JAMO[0] <= character <= JAMO[1]:
        # NFC combines these parts to syllables.
        return True
    return unicodedata.normalize("NFC", character) != character


def is_in_words(text: str) -> bool:
    """Tell whether no character of a text separates words."""
    return all(classes()[ord(character)] for character in text)


def spaced(texts: Sequence[str]) -> list[str]:
    """Return normalized texts as their terms, with spaces between them and nothing else."""
    # One array of all texts, with a line break after each: all characters are classified at once.
    codes = _codes("\n".join([*texts, ""]))
    of_code = classes()[codes]
    text_ends = np.cumsum([len(text) + 1 for text in texts])

    # A mark has the class of the last character that is not a mark, and belongs to it.
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
        of_base: the same, except that a mark (an accent) has the class of the character before it.
        text_ends: the end of each text.
    """
    # Words: from a change to the class of words to the next change.
    changes = np.flatnonzero(of_base[1:] != of_base[:-1]) + 1
    starts = np.append(0, changes).astype(np.int32)
    ends = np.append(changes, len(codes)).astype(np.int32)
    in_run = of_base[starts]
    words = in_run == WORD

    # Bigrams: from each character to the end of the next one, or of the character if it is alone.
    units = np.flatnonzero(of_code == UNIT).astype(np.int32)
    run_ends = ends[in_run == UNIT]
    run_end = run_ends[np.searchsorted(run_ends, units, side="right")]
    following = np.append(units[1:], np.int32(len(codes)))
    after_following = np.append(following[1:], np.int32(len(codes)))
    is_last = following >= run_end
    is_first = np.append(True, is_last[:-1])
    # The last character of several has not begun a bigram.
    is_term = ~is_last | is_first
    starts = np.concatenate((starts[words], units[is_term]))
    ends = np.concatenate((ends[words], np.minimum(after_following, run_end)[is_term]))

    # Copy all terms in their order, each with the character behind it, which becomes a space.
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
