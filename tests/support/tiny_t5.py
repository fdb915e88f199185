"""A T5 of two layers with frequent strings of given prompts as its vocabulary, which replies "1" or "0"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path


def save_tiny_t5(folder: Path, prompts: Sequence[str], pieces: int = 400, steps: int = 40) -> Path:
    """Writes model and tokenizer. A token has at most 3 characters. Labels: an even number of "e", learned in part."""
    import torch
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    special = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    pattern = r"\S{1,3}"
    common = [piece for piece, _ in Counter(re.findall(pattern, " ".join(prompts))).most_common(pieces)]
    vocabulary = {word: i for i, word in enumerate(dict.fromkeys([*special.values(), "0", "1", *common]))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex(pattern), "isolated")]
    )
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    config = T5Config(vocab_size=len(vocabulary), dropout_rate=0, decoder_start_token_id=0, **sizes)
    network = T5ForConditionalGeneration(config)
    inputs = fast(list(prompts), padding=True, truncation=True, max_length=96, return_tensors="pt")
    labels = ["1" if prompt.count("e") % 2 == 0 else "0" for prompt in prompts]
    wanted = fast(labels, return_tensors="pt").input_ids
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    for step in range(steps):
        chosen = slice(step * 16 % len(prompts), step * 16 % len(prompts) + 16)
        optimizer.zero_grad()
        network(**{name: values[chosen] for name, values in inputs.items()}, labels=wanted[chosen]).loss.backward()
        optimizer.step()
    network.save_pretrained(folder)
    return folder
