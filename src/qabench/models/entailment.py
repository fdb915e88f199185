"""AutoAIS labels: whether a claim's evidence entails it, according to an entailment model.

Source: Malaviya et al., ExpertQA, NAACL 2024 (https://arxiv.org/abs/2309.07852), and ``autoais.py``
below ``modeling/auto_attribution`` of its repository. Honovich et al., TRUE, NAACL 2022, for the
model. Schuster et al., 2022 (https://arxiv.org/abs/2204.07447), for long evidence.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from qabench.errors import MissingExtra, QabenchError
from qabench.models.loader import ModelSource, buckets, cannot_load, locate

MODEL = "google/t5_xxl_true_nli_mixture"
MODEL_VARIABLE = "QABENCH_NLI_MODEL"
# The authors' limit for a prompt, in tokens. Longer evidence is first reduced to some of its
# sentences.
MAX_LENGTH = 512
MAX_NEW_TOKENS = 20
# Long evidence is replaced by its two most and its two least entailing sentences.
EXTREME_SENTENCES = 2
# As upstream, marks of several digits such as [10] stay.
MARK = re.compile(r"\[\d\]\s?")


@dataclass(frozen=True, slots=True)
class Entailed:
    """The output of a model for one prompt.

    Attributes:
        entailed: whether the generated text is "1".
        one: the logit of the token "1" at the first position.
        zero: the logit of the token "0" at the first position.
    """

    entailed: bool
    one: float
    zero: float


Splitter = Callable[[str], Sequence[str]]
"""Splits a text into sentences."""
Encoded = list[list[int]]
"""The token ids of each prompt in a batch."""


def prompt_of(evidence: str, claim: str) -> str:
    """Return the model's prompt for a claim and its evidence."""
    return f"premise: {evidence} hypothesis: {claim}"


def clean(text: str) -> str:
    """Clean a claim or a piece of evidence, as upstream.

    Citation marks of one digit are removed, and so is the first paragraph if it begins with a URL.
    The other paragraphs are joined by spaces.
    """
    paragraphs = MARK.sub("", text).split("\n\n")
    if paragraphs[0].startswith("http"):
        del paragraphs[0]
    return " ".join(paragraphs)


def extremes(sentences: Sequence[str], judgments: Sequence[Entailed]) -> str:
    """Return the two most and the two least entailing sentences of evidence, joined in this order.

    With fewer than four sentences some appear twice. As upstream, sentences are ordered by the
    probability of "0" in single precision. Confident judgments have equal probabilities, so NumPy's
    unstable sort decides their order.
    """
    probabilities = list(map(_neutral, judgments))
    order = np.argsort(np.array(probabilities, dtype=np.float32)).tolist()
    extreme = [*order[:EXTREME_SENTENCES], *order[-EXTREME_SENTENCES:]]
    return " ".join(sentences[i] for i in extreme)


def _neutral(judgment: Entailed) -> np.float32:
    """Return the softmax probability of "0" among "1" and "0", computed as upstream does."""
    logits = np.array([judgment.one, judgment.zero], dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        shares = np.exp(logits) / np.sum(np.exp(logits), axis=0)
    return np.float32(shares[1])


def label_claims(
    claims: Sequence[tuple[str, Sequence[str] | None]],
    model: Entailment,
    split: Splitter | None = None,
) -> list[str]:
    """Return "Y" for each claim that its evidence entails, else "N".

    A claim without evidence is N. If claim and evidence have more than 512 tokens together, every
    sentence of the evidence is judged separately, and the claim is judged by the two most and the
    two least entailing sentences. As upstream, the prompt for a single sentence is in turn used as
    the evidence in a second prompt.

    Args:
        claims: each claim's text and the pieces of its evidence.
        model: the model from ``qabench.models.entailment.load_entailment``.
        split: splits long evidence into sentences. Default: NLTK's Punkt, as upstream.

    Returns:
        One label per claim, in order. [] for no claims.

    Raises:
        MissingExtra: nltk, which splits long evidence, is not installed.
        QabenchError: the data of Punkt, which splits long evidence, is not installed.
    """
    # By position, for each claim that has evidence: the evidence and the claim, and the prompt with
    # both.
    texts: dict[int, tuple[str, str]] = {}
    prompts: dict[int, str] = {}
    for i, (claim, pieces) in enumerate(claims):
        if pieces:
            evidence = " ".join(map(clean, pieces))
            texts[i] = evidence, clean(claim)
            prompts[i] = prompt_of(*texts[i])
    lengths = model.n_tokens(list(prompts.values()))
    too_long = []
    for i, length in zip(prompts, lengths, strict=True):
        if length > MAX_LENGTH:
            too_long.append(i)
    long_texts = [texts[i] for i in too_long]
    shortened = _shortened(long_texts, model, split or punkt)
    for i, evidence in zip(too_long, shortened, strict=True):
        _, claim = texts[i]
        prompts[i] = prompt_of(evidence, claim)
    labels = ["N"] * len(claims)
    for i, judgment in zip(prompts, _judge(model, list(prompts.values())), strict=True):
        if judgment.entailed:
            labels[i] = "Y"
    return labels


def punkt(text: str) -> list[str]:
    """Return the sentences of an English text, according to NLTK's Punkt."""
    try:
        from nltk import sent_tokenize
    except ImportError:
        raise MissingExtra(
            "splitting texts into sentences needs nltk: pip install 'qabench[autoais]'"
        ) from None
    try:
        return list(sent_tokenize(text))
    except LookupError:
        raise QabenchError(
            "splitting texts into sentences needs the data of NLTK's Punkt: python -m nltk.downloader punkt_tab"
        ) from None


def _shortened(texts: Sequence[tuple[str, str]], model: Entailment, split: Splitter) -> list[str]:
    """Return each evidence reduced to its two most and its two least entailing sentences."""
    sentences_of_texts = []
    prompts = []
    for evidence, claim in texts:
        sentences = list(split(evidence))
        sentences_of_texts.append(sentences)
        for sentence in sentences:
            # As upstream, the prompt for a sentence becomes the evidence in a second prompt.
            prompts.append(prompt_of(prompt_of(sentence, claim), claim))
    judgments = iter(_judge(model, prompts))
    shortened = []
    for sentences in sentences_of_texts:
        own_judgments = [next(judgments) for _ in sentences]
        shortened.append(extremes(sentences, own_judgments))
    return shortened


def _judge(model: Entailment, prompts: Sequence[str]) -> list[Entailed]:
    if not prompts:
        return []
    # Each distinct prompt is judged once: answers share evidence, and evidence shares sentences.
    distinct = list(dict.fromkeys(prompts))
    judgments = dict(zip(distinct, model.judge(distinct), strict=True))
    return [judgments[prompt] for prompt in prompts]


class Entailment:
    """A loaded sequence-to-sequence model that judges the prompts of ``prompt_of`` greedily.

    Attributes:
        name: the model, its commit or digest, and the dtype.
        device: where it runs: "float32 on cpu".
        batch_size: the number of prompts of 512 tokens per batch. Batches of shorter prompts have
            more prompts. On a CPU, more than 4 are slower, because the batch exceeds its caches.
    """

    def __init__(self, source: ModelSource) -> None:
        from transformers import AutoModelForSeq2SeqLM

        self.name = f"{source.label}:{source.dtype}"
        self.device = f"{source.dtype} on {source.device}"
        self.batch_size = 4 if source.device == "cpu" else 16
        self.tokenizer = source.tokenizer()
        # As upstream, these are the ids of the bare digits, not of the tokens for digits at the
        # start of a word.
        self.verdicts = self.tokenizer.convert_tokens_to_ids(["1", "0"])
        if self.tokenizer.unk_token_id in self.verdicts or None in self.verdicts:
            raise cannot_load(source.name, 'its vocabulary lacks "1" or "0", the verdicts of TRUE')
        self.network = source.network(AutoModelForSeq2SeqLM)

    def n_tokens(self, prompts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each prompt, including the end token, before truncation."""
        if not prompts:
            return []
        encoded = self.tokenizer(list(prompts), verbose=False).input_ids
        return list(map(len, encoded))

    def judge(self, prompts: Sequence[str]) -> list[Entailed]:
        """Return one judgment per prompt, in order. Prompts are truncated to 512 tokens."""
        if not prompts:
            return []
        encoded = self.tokenizer(list(prompts), truncation=True, max_length=MAX_LENGTH).input_ids
        lengths = list(map(len, encoded))
        by_position: dict[int, Entailed] = {}
        for batch in buckets(lengths, self.batch_size, longest=MAX_LENGTH):
            judgments = self.judge_batch([encoded[i] for i in batch])
            by_position |= zip(batch, judgments, strict=True)
        return [by_position[i] for i in range(len(prompts))]

    def judge_batch(self, encoded: Encoded) -> list[Entailed]:
        """Return one judgment per prompt of a batch, in order."""
        import torch

        padded = self.tokenizer.pad(
            {"input_ids": encoded}, padding_side="right", return_tensors="pt"
        )
        with torch.inference_mode():
            output = self.network.generate(
                **padded.to(self.network.device),
                do_sample=False,
                num_beams=1,
                max_new_tokens=MAX_NEW_TOKENS,
                return_dict_in_generate=True,
                output_logits=True,
            )
        texts = self.tokenizer.batch_decode(output.sequences, skip_special_tokens=True)
        logits = output.logits[0][:, self.verdicts].float().tolist()
        judgments = []
        for text, (logit_of_1, logit_of_0) in zip(texts, logits, strict=True):
            judgments.append(Entailed(text == "1", logit_of_1, logit_of_0))
        return judgments


def load_entailment(
    model: str | ModelSource | None = None, *, dtype: str = "float32"
) -> Entailment:
    """Return a model that judges whether evidence entails a claim.

    Args:
        model: a folder, or a name on the Hub, perhaps with a revision. Default: QABENCH_NLI_MODEL,
            or else ``MODEL`` from TRUE, which has 11 billion parameters: 45 GB in float32. See
            ``qabench.models.loader.locate``. For several GPUs, see ``qabench.cluster``.
        dtype: "float32", as upstream. "bfloat16" or "float16" need half the memory and may change
            close verdicts.

    Raises:
        MissingExtra: torch or transformers is not installed.
        QabenchError: the model cannot be loaded.
    """
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as error:
        raise MissingExtra(
            f"AutoAIS labels need {error.name}: pip install 'qabench[autoais]'"
        ) from None
    return _loaded(locate(model or os.environ.get(MODEL_VARIABLE) or MODEL, dtype=dtype))


# Without the cache, computing a metric twice would read gigabytes twice.
_loaded = lru_cache(maxsize=1)(Entailment)
