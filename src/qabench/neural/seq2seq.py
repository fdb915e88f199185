"""Models for ``qabench.neural.nli``: any sequence-to-sequence model of transformers that generates "1" or "0".

The label is "1" exactly if greedy generation writes "1" and ends. So the decoder runs once, for two positions: the
first token, and the one after an assumed "1". Only if these do not decide (a blank or a special token comes first), the
answer is generated. The encoder, which does nearly all the work, gets batches of similar length, and each prompt once;
on a CPU without padding.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from qabench.errors import MissingExtra
from qabench.neural.batches import buckets
from qabench.neural.models import ModelSource, cannot_load, devices_of, locate, with_default_dtype
from qabench.neural.nli import MAX_LENGTH, MODEL, Judgment
from qabench.neural.workers import Workers

MODEL_VARIABLE = "QABENCH_NLI_MODEL"
MAX_NEW_TOKENS = 20
Encoded = list[list[int]]
"""The token ids of the prompts of a batch."""


@dataclass(frozen=True)
class Seq2SeqEntailment:
    """A loaded model (``qabench.neural.nli.Entailment``); ``close`` or a ``with`` block ends its worker processes.

    Attributes:
        name: the model, its commit or digest, and the dtype.
        devices: where it runs: "float32 on cpu".
        batch_size: the number of prompts of 512 tokens per batch; of shorter ones there are more.
    """

    name: str
    devices: str
    tokenizer: Any
    batch_size: int
    run: Callable[[Sequence[Encoded]], Iterator[list[Judgment]]]
    close: Callable[[], None] = field(default=lambda: None)

    def __enter__(self) -> Seq2SeqEntailment:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def n_tokens(self, prompts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each prompt, including the end token, before truncation."""
        return [len(ids) for ids in self.tokenizer(list(prompts), verbose=False).input_ids] if prompts else []

    def judge(self, prompts: Sequence[str]) -> list[Judgment]:
        """Return one judgment per prompt, in order; prompts are truncated to 512 tokens. Decoding is greedy."""
        if not prompts:
            return []
        encoded = self.tokenizer(list(prompts), truncation=True, max_length=MAX_LENGTH).input_ids
        batches = buckets([len(ids) for ids in encoded], self.batch_size, longest=MAX_LENGTH)
        judged: dict[int, Judgment] = {}
        for batch, outputs in zip(batches, self.run([[encoded[i] for i in batch] for batch in batches]), strict=True):
            judged |= zip(batch, outputs, strict=True)
        return [judged[i] for i in range(len(prompts))]


class Judge:
    """The network on one device. Made in each worker process; called with a batch."""

    def __init__(self, source: ModelSource) -> None:
        from transformers import AutoModelForSeq2SeqLM

        self.tokenizer = source.tokenizer()
        self.network = _fused(source.network(AutoModelForSeq2SeqLM))
        self.verdicts = _verdicts(source, self.tokenizer)
        self.expected = self.tokenizer("1", add_special_tokens=False).input_ids[0]
        ends = self.network.generation_config.eos_token_id
        self.ends = set(ends if isinstance(ends, list) else [ends])
        self.texts: dict[int, str] = {}
        self.unpadded = _unpadded(self.network)

    def __call__(self, encoded: Encoded) -> list[Judgment]:
        """Return one judgment per prompt of a batch, in order."""
        start = self.network.generation_config.decoder_start_token_id
        if start is None:
            start = self.network.config.decoder_start_token_id
        logits = (self.unpadded or self._logits)(encoded, [start, self.expected]).float()
        best, shown = logits.argmax(-1).tolist(), logits[:, 0, list(self.verdicts)].tolist()
        entailed = [self._entailed(*pair) for pair in best]
        open_ones = [i for i, verdict in enumerate(entailed) if verdict is None]
        for i, text in zip(open_ones, self._generated([encoded[i] for i in open_ones]), strict=True):
            entailed[i] = text == "1"
        return [Judgment(bool(verdict), *pair) for verdict, pair in zip(entailed, shown, strict=True)]

    def _logits(self, encoded: Encoded, starts: list[int]) -> Any:
        """Return the logits of the token after each of the decoder's first tokens: prompts x starts x vocabulary."""
        import torch

        decoder_ids = torch.tensor([starts] * len(encoded), device=self.network.device)
        with torch.inference_mode():
            return self.network(**self._padded(encoded), decoder_input_ids=decoder_ids, use_cache=False).logits

    def _entailed(self, first: int, second: int) -> bool | None:
        """Return whether an answer that begins with these two tokens is "1"; None if they do not decide."""
        if first in self.ends or self._text(first) not in ("", "1"):
            return False
        if first == self.expected:
            if second in self.ends:
                return True
            if self._text(second):
                return False
        return None

    def _text(self, token: int) -> str:
        if token not in self.texts:
            self.texts[token] = self.tokenizer.decode([token], skip_special_tokens=True).strip()
        return self.texts[token]

    def _generated(self, encoded: Encoded) -> list[str]:
        import torch

        if not encoded:
            return []
        with torch.inference_mode():
            output = self.network.generate(
                **self._padded(encoded), do_sample=False, num_beams=1, max_new_tokens=MAX_NEW_TOKENS
            )
        return list(self.tokenizer.batch_decode(output, skip_special_tokens=True))

    def _padded(self, encoded: Encoded) -> Any:
        padded = self.tokenizer.pad({"input_ids": encoded}, padding_side="right", return_tensors="pt")
        return padded.to(self.network.device)


def load_entailment(
    model: str | None = None,
    revision: str | None = None,
    *,
    batch_size: int | None = None,
    device: str | None = None,
    dtype: str | None = None,
) -> Seq2SeqEntailment:
    """Return a model that judges whether evidence entails a claim.

    Args:
        model: a name on the Hub, or a folder. Default: QABENCH_NLI_MODEL, or else ``MODEL`` from TRUE, which has 11
            billion parameters: 45 GB in float32. Other models must have safetensors; see
            ``qabench.neural.models.locate``.
        revision: a revision of a model on the Hub; ``name`` of the result contains the commit.
        batch_size: the number of prompts of 512 tokens per batch; batches of shorter prompts are larger. Default: 16 on
            a GPU; 4 on a CPU, whose caches large ones exceed.
        device: device names of torch, separated by commas, or "all" for every GPU; with several, each has a process of
            its own. Default: a GPU if there is one.
        dtype: "float32", as upstream; "bfloat16" or "float16" need half the memory and may change close verdicts.
            Default: bfloat16 for a model with more than 2 billion parameters on a GPU, otherwise float32.

    Raises:
        InputError: an unknown dtype or device, or a batch size below 1.
        MissingExtra: a package is not installed.
        QabenchError: the model cannot be loaded, or its vocabulary has no "1" or "0".
    """
    if batch_size is not None:
        buckets([], batch_size)  # checks it before gigabytes are loaded
    try:
        import torch  # noqa: F401
        from transformers import AutoModelForSeq2SeqLM
    except ImportError as error:
        raise MissingExtra(f"AutoAIS labels need {error.name}: pip install 'qabench[autoais]'") from None
    model = model or os.environ.get(MODEL_VARIABLE) or MODEL
    devices = devices_of(device)
    # The authors of the official weights publish them as a pickle only.
    pickled = True if model == MODEL else None
    source = locate(model, revision, device=devices[0], dtype=dtype or "float32", pickled=pickled)
    if dtype is None:
        source = with_default_dtype(source, AutoModelForSeq2SeqLM)
    tokenizer = source.tokenizer()
    _verdicts(source, tokenizer)
    batch_size = batch_size or (4 if devices[0] == "cpu" else 16)
    common = (f"{source.label}:{source.dtype}", f"{source.dtype} on {', '.join(devices)}", tokenizer, batch_size)
    if len(devices) == 1:
        judge = Judge(source)
        return Seq2SeqEntailment(*common, lambda batches: map(judge, batches))
    workers = Workers(Judge, source, devices)
    return Seq2SeqEntailment(*common, workers.map, workers.close)


@cache
def shared_entailment(
    model: str | None = None, revision: str | None = None, device: str | None = None, dtype: str | None = None
) -> Seq2SeqEntailment:
    """Return ``load_entailment``'s model, loaded once per process."""
    return load_entailment(model, revision, device=device, dtype=dtype)


def _fused(network: Any) -> Any:
    """Return the network with PyTorch's GELU: transformers computes the same function in eight operations."""
    import torch
    from transformers.activations import NewGELUActivation

    for module in list(network.modules()):
        for name, child in module.named_children():
            if isinstance(child, NewGELUActivation):
                setattr(module, name, torch.nn.GELU(approximate="tanh"))
    return network


def _unpadded(network: Any) -> Callable[[Encoded, list[int]], Any] | None:
    """Return a faster function for a T5 on a CPU, else None."""
    import torch
    from transformers import MT5ForConditionalGeneration, T5ForConditionalGeneration

    from qabench.neural.t5 import UnpaddedT5

    if not isinstance(network, T5ForConditionalGeneration | MT5ForConditionalGeneration):
        return None
    if network.device.type != "cpu" or network.dtype == torch.float16:
        return None
    return UnpaddedT5(network, MAX_LENGTH).logits


def _verdicts(source: ModelSource, tokenizer: Any) -> tuple[int, int]:
    """Return the ids of the bare digits "1" and "0", as upstream (not those that begin a word)."""
    one_id, zero_id = tokenizer.convert_tokens_to_ids(["1", "0"])
    if tokenizer.unk_token_id in (one_id, zero_id) or None in (one_id, zero_id):
        raise cannot_load(source.name, ValueError('its vocabulary lacks "1" or "0", the verdicts of a TRUE model'))
    return one_id, zero_id
