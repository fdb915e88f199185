"""Labels of ExpertQA's claims by a T5 of random weights, against the authors' loop, rewritten.

The authors' script passes no attention mask, which transformers 4 made from the padding and
transformers 5 does not. The loop here passes it.

The network has the real architecture (T5 1.1) in the shape that the environment variable
``QABENCH_T5`` names: tiny, small, large or xxl. With ``QABENCH_DEVICE=cuda`` it runs on a GPU in
bfloat16. Its output layer is made so that it says "1" to about half of the prompts, and ends after
that, as the real model does: the same number of decoder steps is needed.
"""

from __future__ import annotations

import functools
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from cases import Case, Measured, timed
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    AutoModelForSeq2SeqLM,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from qabench.benchmarks.expertqa.claim_lines import annotated_lines
from qabench.benchmarks.expertqa.claims import sentence_splitter
from qabench.benchmarks.expertqa.questions import load_questions
from qabench.models.entailment import (
    MAX_LENGTH,
    Entailed,
    clean,
    extremes,
    label_claims,
    load_entailment,
    prompt_of,
)
from qabench.models.loader import locate

Claims = list[tuple[str, list[str]]]
SHAPES: dict[str, dict[str, int]] = {
    "tiny": {"d_model": 64, "d_ff": 128, "d_kv": 16, "num_heads": 4, "num_layers": 2},
    "small": {"d_model": 512, "d_ff": 1024, "d_kv": 64, "num_heads": 6, "num_layers": 8},
    "large": {"d_model": 1024, "d_ff": 2816, "d_kv": 64, "num_heads": 16, "num_layers": 24},
    "xxl": {"d_model": 4096, "d_ff": 10240, "d_kv": 64, "num_heads": 64, "num_layers": 24},
}
SHAPE = os.environ.get("QABENCH_T5", "small")
DEVICE = os.environ.get("QABENCH_DEVICE", "cpu")
DTYPE = "float32" if DEVICE == "cpu" else "bfloat16"
CLAIMS = 36 if SHAPE in ("tiny", "small") else 6  # with evidence, evenly spread over all
LONG = range(
    450, MAX_LENGTH + 1
)  # tokens of the prompts of the second case, which have the least padding
SPECIAL = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}


def annotated_claims() -> Claims:
    """The claims of the 436 annotated answers of the config random, in order."""
    items = [
        item
        for split in ("validation", "test")
        for item in annotated_lines(load_questions("random", split))
    ]
    return [(claim["claim"], claim["evidence"]) for item in items for claim in item["claims"]]


def save_tokenizer(texts: Sequence[str], folder: Path, size: int = 4_000) -> Any:
    """A tokenizer with pieces of the given texts (about 4 characters each, as T5's), and the labels
    "0" and "1".
    """
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=[*SPECIAL.values()], show_progress=False
    )
    tokenizer.train_from_iterator([*texts, *["0 1"] * 10_000], trainer)
    end = ("</s>", tokenizer.token_to_id("</s>"))
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[end])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL)
    fast.save_pretrained(folder)
    return fast


def save_network(
    shape: str, tokenizer: Any, prompts: Sequence[str], folder: Path, device: str, dtype: str
) -> None:
    """A network that says "1" to some prompts, "0" to the others, and then ends."""
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=32_128,
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
        decoder_start_token_id=tokenizer.pad_token_id,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        dropout_rate=0,
        **SHAPES[shape],
    )
    network = T5ForConditionalGeneration(config).to(device, getattr(torch, dtype)).eval()
    one, zero = (tokenizer(text, add_special_tokens=False).input_ids[0] for text in "10")
    hidden: list[torch.Tensor] = []
    hook = network.lm_head.register_forward_pre_hook(
        lambda _, inputs: hidden.append(inputs[0].float())
    )
    with torch.inference_mode():
        for prompt in prompts:
            ids = tokenizer(
                prompt, truncation=True, max_length=MAX_LENGTH, return_tensors="pt"
            ).input_ids.to(device)
            starts = torch.tensor(
                [[tokenizer.pad_token_id, label] for label in (one, zero)], device=device
            )
            network(input_ids=ids.expand(2, -1), decoder_input_ids=starts)
    hook.remove()
    states = torch.stack(hidden)
    first, middle, after = states[:, 0, 0], states[:, 0, 0].mean(0), states[:, :, 1].mean((0, 1))
    bias = middle / (middle @ middle)  # about 1 for every prompt
    axis = torch.linalg.svd(first - middle, full_matrices=False).Vh[1]
    axis = axis - (first @ axis).median() * bias  # half of the prompts are on each side
    step = (after - middle) / (after - middle).norm()
    step = step - (middle + after) @ step / 2 * bias  # positive after the first token only
    rows = torch.zeros_like(network.lm_head.weight, dtype=torch.float32)
    rows[one], rows[zero] = 20 * axis, -20 * axis
    # The bare digits, by which sentences of long evidence are ordered.
    bare = tokenizer.convert_tokens_to_ids(["1", "0"])
    rows[bare] = rows[[one, zero]] / 2
    rows[tokenizer.eos_token_id] = 1000 * step
    # A new parameter: transformers has tied the layer to the embeddings, which the real model does
    # not.
    network.lm_head.weight = torch.nn.Parameter(rows.to(network.dtype))
    network.save_pretrained(folder)


class Plain:
    """The authors' loop: one prompt at a time, padded to 512 tokens (or not), and generated."""

    def __init__(self, network: Any, tokenizer: Any, padding: bool) -> None:
        self.network, self.tokenizer = network, tokenizer
        self.verdicts = self.tokenizer.convert_tokens_to_ids(["1", "0"])
        self.padding: Any = "max_length" if padding else False
        self.tokens = self.prompts = 0

    def judge(self, prompt: str) -> Entailed:
        options: dict[str, Any] = {
            "padding": self.padding,
            "truncation": True,
            "max_length": MAX_LENGTH,
        }
        inputs = self.tokenizer(prompt, return_tensors="pt", return_token_type_ids=False, **options)
        self.tokens, self.prompts = (
            self.tokens + int(inputs["attention_mask"].sum()),
            self.prompts + 1,
        )
        with torch.inference_mode():
            output = self.network.generate(
                **inputs.to(self.network.device),
                return_dict_in_generate=True,
                output_logits=True,
                max_new_tokens=19,
            )
        text = self.tokenizer.decode(output.sequences[0], skip_special_tokens=True)
        one, zero = (float(output.logits[0][0, verdict]) for verdict in self.verdicts)
        return Entailed(text == "1", one, zero)

    def label(self, claims: Claims, split: Any) -> Iterator[str]:
        for claim, pieces in claims:
            if not pieces:
                yield "N"
                continue
            evidence, text = " ".join(map(clean, pieces)), clean(claim)
            if len(self.tokenizer(prompt_of(evidence, text), verbose=False).input_ids) > MAX_LENGTH:
                sentences = list(split(evidence))
                judged = [
                    self.judge(prompt_of(prompt_of(sentence, text), text)) for sentence in sentences
                ]
                evidence = extremes(sentences, judged)
            yield "Y" if self.judge(prompt_of(evidence, text)).entailed else "N"


def cases(size: int | None = None) -> Iterator[Case]:
    claims = [claim for claim in annotated_claims() if claim[1]]
    prompts = [prompt_of(" ".join(map(clean, pieces)), clean(claim)) for claim, pieces in claims]
    split = sentence_splitter()[1]
    if DEVICE == "cpu":
        torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokenizer = save_tokenizer(prompts, folder)
        save_network(SHAPE, tokenizer, prompts[::40], folder, DEVICE, DTYPE)
        model = load_entailment(replace(locate(str(folder), dtype=DTYPE), device=DEVICE))
        network = (
            AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=getattr(torch, DTYPE))
            .to(DEVICE)
            .eval()
        )
        plain = {
            "the authors' loop, padded to 512 tokens": Plain(network, tokenizer, padding=True),
            "the same loop without padding": Plain(network, tokenizer, padding=False),
        }
        label_claims(claims[:2], model, split)  # warms up
        for loop in plain.values():
            list(loop.label(claims[:1], split))
        long = [
            claim for claim, n in zip(claims, model.n_tokens(prompts), strict=True) if n in LONG
        ]
        chosen = {
            "": claims[:: len(claims) // CLAIMS][:CLAIMS],
            f" of {LONG[0]} to {LONG[-1]} tokens": long[:6],
        }
        for kind, own in chosen.items():
            yield Case(
                f"labels of {len(own)} claims{kind}, T5 of the shape {SHAPE}, {DTYPE}, {DEVICE}",
                lambda own=own: timed(lambda: label_claims(own, model, split), _clock()),
                {
                    title: functools.partial(_labels_of_loop, loop, own, split)
                    for title, loop in plain.items()
                },
                warm=False,
            )


def _labels_of_loop(loop: Plain, claims: Claims, split: Any) -> Measured:
    before = loop.tokens
    result = timed(lambda: list(loop.label(claims, split)), _clock())
    return Measured(
        result.seconds, result.output, f"{(loop.tokens - before) / result.seconds:.0f} tokens/s"
    )


def _clock() -> Callable[[], float]:
    """CPU time is steadier on a machine with other work, but a GPU's work is not in it."""
    return time.process_time if DEVICE == "cpu" else time.perf_counter
