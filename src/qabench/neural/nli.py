"""AutoAIS labels: whether a claim's evidence entails it, according to an entailment model.

Source: Malaviya et al., ExpertQA, NAACL 2024 (https://arxiv.org/abs/2309.07852), and ``autoais.py`` below
``modeling/auto_attribution`` of its repository; Honovich et al., TRUE, NAACL 2022, for the model; Schuster et al., 2022
(https://arxiv.org/abs/2204.07447), for long evidence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from qabench.errors import MissingExtra, QabenchError

MODEL = "google/t5_xxl_true_nli_mixture"
MAX_LENGTH = 512
KEPT = 2  # the number of most, and of least, entailed sentences that are kept of long evidence
MARK = re.compile(r"\[\d\]\s?")  # one digit: [10] is kept, as upstream


@dataclass(frozen=True, slots=True)
class Judgment:
    """The output of a model for one prompt.

    Attributes:
        entailed: whether the generated text is "1".
        one: the logit of the token "1" at the first position.
        zero: the logit of the token "0" at the first position.
    """

    entailed: bool
    one: float
    zero: float


class Entailment(Protocol):
    """A model that judges the prompts of ``prompt_of``."""

    @property
    def name(self) -> str: ...

    def n_tokens(self, prompts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each prompt, before truncation."""

    def judge(self, prompts: Sequence[str]) -> list[Judgment]:
        """Return one judgment per prompt, in order; prompts are truncated to 512 tokens."""


Splitter = Callable[[str], Sequence[str]]
"""Splits a text into sentences."""


def prompt_of(evidence: str, claim: str) -> str:
    """Return the model's prompt."""
    return f"premise: {evidence} hypothesis: {claim}"


def clean(text: str) -> str:
    """Cleans a claim or a piece of evidence, as upstream.

    Citation marks of one digit are removed, and the first paragraph if it begins with a URL; the other paragraphs are
    joined by spaces.
    """
    paragraphs = MARK.sub("", text).split("\n\n")
    return " ".join(paragraphs[1:] if paragraphs[0].startswith("http") else paragraphs)


def extremes(sentences: Sequence[str], judgments: Sequence[Judgment], *, official_quirks: bool = True) -> str:
    """Return the two most and the two least entailed sentences, joined in this order.

    With fewer than four sentences some appear twice, as upstream.

    Args:
        sentences: those of the evidence.
        judgments: one judgment per sentence.
        official_quirks: order the sentences as upstream does, by the probability of "0" in single precision, in which
            confident judgments are ties that NumPy's unstable sort breaks. Otherwise by the difference of the logits;
            ties by position.
    """
    if official_quirks:
        order = np.argsort(np.array([_neutral(judgment) for judgment in judgments], dtype=np.float32)).tolist()
    else:
        order = sorted(range(len(sentences)), key=lambda i: judgments[i].zero - judgments[i].one)
    return " ".join(sentences[i] for i in [*order[:KEPT], *order[-KEPT:]])


def _neutral(judgment: Judgment) -> np.float32:
    """Return the probability of "0" against "1", as upstream computes it."""
    logits = np.array([judgment.one, judgment.zero], dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        shares = np.exp(logits) / np.sum(np.exp(logits), axis=0)
    return np.float32(shares[1])


def label_claims(
    claims: Sequence[tuple[str, Sequence[str] | None]],
    model: Entailment,
    split: Splitter | None = None,
    *,
    official_quirks: bool = True,
) -> list[str]:
    """ "Y" for each claim that its evidence entails, else "N".

    A claim without evidence is N. If claim and evidence have more than 512 tokens together, every sentence of the
    evidence is judged separately, and the claim is judged by the two most and the two least entailing sentences.

    Args:
        claims: each claim's text and the pieces of its evidence.
        model: the model from ``qabench.neural.seq2seq.load_entailment``.
        split: splits long evidence into sentences. Default: NLTK's Punkt, as upstream.
        official_quirks: select sentences of long evidence as upstream does: the prompt for a single sentence contains
            itself as the evidence, and ties are ordered as ``extremes`` describes.

    Raises:
        QabenchError: Punkt is needed and its data is not installed.
    """
    labels = ["N"] * len(claims)
    texts = {i: (" ".join(map(clean, pieces)), clean(claim)) for i, (claim, pieces) in enumerate(claims) if pieces}
    prompts = {i: prompt_of(*text) for i, text in texts.items()}
    lengths = model.n_tokens(list(prompts.values()))
    long = [i for i, length in zip(prompts, lengths, strict=True) if length > MAX_LENGTH]
    shorter = _shortened([texts[i] for i in long], model, split or punkt, official_quirks)
    prompts |= {i: prompt_of(evidence, texts[i][1]) for i, evidence in zip(long, shorter, strict=True)}
    for i, judgment in zip(prompts, _judge(model, list(prompts.values())), strict=True):
        labels[i] = "Y" if judgment.entailed else "N"
    return labels


def punkt(text: str) -> list[str]:
    """Return the sentences of an English text, according to NLTK's Punkt.

    Raises:
        MissingExtra: NLTK is not installed.
        QabenchError: the data of Punkt is not installed.
    """
    try:
        from nltk import sent_tokenize
    except ImportError:
        raise MissingExtra("splitting evidence into sentences needs nltk: pip install 'qabench[autoais]'") from None
    try:
        return list(sent_tokenize(text))
    except LookupError:
        raise QabenchError(
            "splitting evidence into sentences needs the data of NLTK's Punkt: python -m nltk.downloader punkt_tab, "
            "or pass split=..., a function from a text to its sentences"
        ) from None


def _shortened(texts: Sequence[tuple[str, str]], model: Entailment, split: Splitter, quirks: bool) -> list[str]:
    sentences = [list(split(evidence)) for evidence, _ in texts]
    prompts = [
        prompt_of(prompt_of(sentence, claim) if quirks else sentence, claim)
        for (_, claim), own in zip(texts, sentences, strict=True)
        for sentence in own
    ]
    judged = iter(_judge(model, prompts))
    return [extremes(own, [next(judged) for _ in own], official_quirks=quirks) for own in sentences]


def _judge(model: Entailment, prompts: Sequence[str]) -> list[Judgment]:
    # Each distinct prompt is judged once: answers share evidence, and evidence shares sentences.
    distinct = list(dict.fromkeys(prompts))
    judged = dict(zip(distinct, model.judge(distinct) if distinct else [], strict=True))
    return [judged[prompt] for prompt in prompts]
