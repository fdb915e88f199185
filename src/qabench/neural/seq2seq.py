"""Models for ``qabench.neural.nli``: any sequence-to-sequence model of transformers that generates "1" or "0"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from qabench.errors import MissingExtra
from qabench.neural.batches import buckets
from qabench.neural.models import cannot_load, locate
from qabench.neural.nli import MAX_LENGTH, MODEL, Judgment

MAX_NEW_TOKENS = 20


@dataclass(frozen=True)
class Seq2SeqEntailment:
    """A loaded model (``qabench.neural.nli.Entailment``).

    Attributes:
        name: the model, its commit or digest, and the dtype.
        verdicts: the ids of the tokens "1" and "0".
    """

    name: str
    tokenizer: Any
    network: Any
    verdicts: tuple[int, int]
    batch_size: int

    def n_tokens(self, prompts: Sequence[str]) -> list[int]:
        """The number of tokens of each prompt, including the end token, before truncation."""
        return [len(ids) for ids in self.tokenizer(list(prompts), verbose=False).input_ids] if prompts else []

    def judge(self, prompts: Sequence[str]) -> list[Judgment]:
        """One judgment per prompt, in order; prompts are truncated to 512 tokens. Decoding is greedy."""
        encoded = [self.tokenizer(prompt, truncation=True, max_length=MAX_LENGTH).input_ids for prompt in prompts]
        judged: dict[int, Judgment] = {}
        for batch in buckets([len(ids) for ids in encoded], self.batch_size):
            judged |= zip(batch, self._generate([encoded[i] for i in batch]), strict=True)
        return [judged[i] for i in range(len(prompts))]

    def _generate(self, encoded: list[list[int]]) -> list[Judgment]:
        import torch

        inputs = self.tokenizer.pad({"input_ids": encoded}, padding_side="right", return_tensors="pt")
        with torch.inference_mode():
            output = self.network.generate(
                **inputs.to(self.network.device),
                do_sample=False,
                num_beams=1,
                max_new_tokens=MAX_NEW_TOKENS,
                return_dict_in_generate=True,
                output_logits=True,
            )
        one, zero = self.verdicts
        first = output.logits[0].float()[:, [one, zero]].tolist()
        texts = self.tokenizer.batch_decode(output.sequences, skip_special_tokens=True)
        return [Judgment(text, *logits) for text, logits in zip(texts, first, strict=True)]


def load_entailment(
    model: str = MODEL,
    revision: str | None = None,
    *,
    batch_size: int = 16,
    device: str | None = None,
    dtype: str = "float32",
) -> Seq2SeqEntailment:
    """A model that judges whether evidence entails a claim.

    Args:
        model: a name on the Hub, or a folder. The default, from TRUE, has 11 billion parameters: 45 GB in float32.
        revision: a revision of a model on the Hub; ``name`` of the result contains the commit.
        batch_size: the number of prompts per batch.
        device: a device name of torch. Default: a GPU if there is one.
        dtype: "float32", as upstream; "bfloat16" or "float16" need half the memory and may change close verdicts.

    Raises:
        InputError: an unknown dtype, or a batch size below 1.
        MissingExtra: a package is not installed.
        QabenchError: the model cannot be loaded, or its vocabulary has no "1" or "0".
    """
    buckets([], batch_size)
    try:
        import torch  # noqa: F401
        from transformers import AutoModelForSeq2SeqLM
    except ImportError as error:
        raise MissingExtra(f"AutoAIS labels need {error.name}: pip install 'qabench[autoais]'") from None
    # The authors of the official weights publish them as a pickle only.
    source = locate(model, revision, device=device, dtype=dtype, pickled=True if model == MODEL else None)
    tokenizer = source.tokenizer()
    # The tokens of the bare digits, as upstream (not those that begin a word).
    one, zero = tokenizer.convert_tokens_to_ids(["1", "0"])
    if tokenizer.unk_token_id in (one, zero) or None in (one, zero):
        raise cannot_load(model, ValueError('its vocabulary lacks "1" or "0", the verdicts of a TRUE model'))
    network = source.network(AutoModelForSeq2SeqLM)
    return Seq2SeqEntailment(f"{source.label}:{dtype}", tokenizer, network, (one, zero), batch_size)
