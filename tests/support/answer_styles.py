"""Seeded synthetic answers to real questions: many ways of being right or wrong.

Used by the parity tests and ``performance/``; each style is a function from (question, rng) to a
string.
"""

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

OPENINGS = (
    "Based on what I know, here are the answers you were asking about:\n\n",
    "Sure! I have looked through the relevant articles and found the following.\n",
    "I'm not entirely certain, but these figures were reported at the time: ",
    "",
)
LINKS = (" - ", ": ", " is ", " was listed as ", ", which had been recorded as ", " → ", " (")
FILLER = (
    "The largest ones have been growing faster than their neighbors.",
    "Many of these were founded by immigrants, and they've been studied widely.",
    "It should be noted that the numbers given here may differ between sources; don't rely on them.",
    "There are several others, but they weren't included because the records were lost.",
    "Let's look at each of them: you'll see what I'm talking about.",
    "They ain't gonna publish newer ones, and I've gotta say y'all deserve better.",
)


def pairs(answer: Any) -> list[tuple[str, str]]:
    """(label, value) of all parts of a reference answer, as strings; a label may be empty."""
    if isinstance(answer, dict):
        return [(str(k), " ".join(v for _, v in pairs(value))) for k, value in answer.items()]
    if isinstance(answer, list):
        return [part for item in answer for part in pairs(item)]
    if isinstance(answer, bool):
        return [("", "yes" if answer else "no")]
    return [("", str(answer))]


def exact(question: dict[str, Any], rng: random.Random) -> str:
    """Everything right, one item per line."""
    return "\n".join(f"{k} - {v}" if k else v for k, v in pairs(question["answer"]))


def prose(question: dict[str, Any], rng: random.Random) -> str:
    """Whole sentences around the items, in another order."""
    parts = pairs(question["answer"])
    rng.shuffle(parts)
    said = [f"{k}{rng.choice(LINKS)}{v}. {rng.choice(FILLER)}" if k else f"One of them is {v}." for k, v in parts]
    return rng.choice(OPENINGS) + " ".join(said)


def dropped(question: dict[str, Any], rng: random.Random) -> str:
    """Some items missing, some values swapped between labels."""
    parts = [part for part in pairs(question["answer"]) if rng.random() < 0.7]
    values = [v for _, v in parts]
    if rng.random() < 0.4:
        rng.shuffle(values)
    lines = [f"{i}. **{k}** {rng.choice(LINKS)}{v}" for i, ((k, _), v) in enumerate(zip(parts, values, strict=True), 1)]
    return "\n".join(lines)


def inflected(question: dict[str, Any], rng: random.Random) -> str:
    """Inflected forms of the reference's words, so that the lemmatizer matters."""

    def bend(match: re.Match[str]) -> str:
        word = match[0]
        endings = ("s", "ed", "ing", "es", "'s", "") if not word.endswith("s") else ("", "'", "es")
        return word + rng.choice(endings) if rng.random() < 0.4 else word

    return re.sub(r"[A-Za-z]{4,}", bend, prose(question, rng))


def numbers(question: dict[str, Any], rng: random.Random) -> str:
    """Numbers with and without thousands commas, with units and other decimals."""

    def reformat(match: re.Match[str]) -> str:
        plain = match[0].replace(",", "")
        whole, _, decimals = plain.partition(".")
        grouped = f"{int(whole):,}" if len(whole) < 300 else whole
        forms = (plain, grouped, f"${grouped}", f"{plain}.", f"{grouped}%", f"~{plain}", f"{grouped}.{decimals or 0}")
        return rng.choice(forms)

    return re.sub(r"\d[\d,]*(\.\d+)?", reformat, exact(question, rng))


def damaged(question: dict[str, Any], rng: random.Random) -> str:
    """Mojibake, entities, curly quotes, ligatures, odd spaces, control characters, lone surrogates."""
    text = prose(question, rng)
    damages: Sequence[Callable[[str], str]] = (
        lambda s: s.encode("utf-8").decode("latin-1"),
        lambda s: s.encode("utf-8").decode("cp1252", errors="replace"),
        lambda s: s.replace("&", "&amp;").replace("'", "&#39;").replace(" - ", " &ndash; "),
        lambda s: s.replace("'", "\u2019").replace("fi", "\ufb01").replace(" ", "\u00a0"),
        lambda s: s.replace("\n", "\r\n").replace(" ", "  \t"),
        lambda s: s.replace("e", "e\u0301").replace("o", "\uff4f"),
        lambda s: s[:40] + "\x00\x1b[31m\ud83d" + s[40:] + "\u0130\u212a\u1e9e",
        str.upper,
    )
    return rng.choice(damages)(text)


def degenerate(question: dict[str, Any], rng: random.Random) -> str:
    """Empty, blank, punctuation only, one repeated word."""
    word = rng.choice([v for _, v in pairs(question["answer"])] or ["none"])
    return rng.choice(("", " ", "\n\n", "...", "?!", "None", "null", f"{word} " * 40, word + ".", f"({word})"))


Style = Callable[[dict[str, Any], random.Random], str]
STYLES: tuple[Style, ...] = (exact, prose, dropped, inflected, numbers, damaged, degenerate)


def answers(questions: Sequence[dict[str, Any]], style: Callable[..., str], seed: int = 0) -> list[str]:
    """One answer per question in the style; sometimes that of another question, or with it
    appended.
    """
    out = []
    for i, question in enumerate(questions):
        rng = random.Random(f"{seed}/{style.__name__}/{i}")
        text = style(question, rng)
        other = questions[rng.randrange(len(questions))]
        chance = rng.random()
        if chance < 0.05:
            text = style(other, rng)
        elif chance < 0.15:
            text += "\n\n" + exact(other, rng)
        out.append(text)
    return out
