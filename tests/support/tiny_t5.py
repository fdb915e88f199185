"""A T5 of two layers with random weights that replies "1" to half of the given prompts, and "0" to
the rest.
"""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SPECIAL = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
PATTERN = r"\S{1,3}"


def save_tiny_t5(folder: Path, prompts: Sequence[str], pieces: int = 400) -> Path:
    """Writes model and tokenizer. The vocabulary is the most frequent strings of at most 3
    characters.
    """
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    tokenizer = _tokenizer(prompts, pieces)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0,
        decoder_start_token_id=0, tie_word_embeddings=False,
    )  # fmt: skip
    network = T5ForConditionalGeneration(config).eval()
    network.lm_head.weight = torch.nn.Parameter(_output_layer(network, tokenizer, prompts))
    network.save_pretrained(folder)
    return folder


def _tokenizer(prompts: Sequence[str], pieces: int) -> Any:
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    common = [piece for piece, _ in Counter(re.findall(PATTERN, " ".join(prompts))).most_common(pieces)]
    vocabulary = {word: i for i, word in enumerate(dict.fromkeys([*SPECIAL.values(), "0", "1", *common]))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    split = pre_tokenizers.Split(Regex(PATTERN), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), split])
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL)


def _output_layer(network: Any, tokenizer: Any, prompts: Sequence[str]) -> Any:
    """Rows for "1", "0" and the end; the other tokens have the logit 0.

    The verdict is the side of the median, along the direction in which the decoder's first states
    vary most. The end wins at the second position only.
    """
    import torch

    one, zero = tokenizer.convert_tokens_to_ids(["1", "0"])
    hidden: list[Any] = []
    hook = network.lm_head.register_forward_pre_hook(lambda _, inputs: hidden.append(inputs[0]))
    with torch.inference_mode():
        for prompt in prompts:
            ids = tokenizer(prompt, truncation=True, max_length=512, return_tensors="pt").input_ids
            starts = torch.tensor([[0, one], [0, zero]])
            network(input_ids=ids.expand(2, -1), decoder_input_ids=starts)
    hook.remove()
    states = torch.stack(hidden)  # prompt, verdict, position, dimension
    first, middle, after = states[:, 0, 0], states[:, 0, 0].mean(0), states[:, :, 1].mean((0, 1))
    always = middle / (middle @ middle)  # about 1 for every prompt
    axis = torch.linalg.svd(first - middle, full_matrices=False).Vh[0]
    axis = axis - (first @ axis).median() * always
    step = (after - middle) / (after - middle).norm()
    step = step - (middle + after) @ step / 2 * always
    rows = torch.zeros(network.config.vocab_size, network.config.d_model)
    rows[one], rows[zero] = 20 * axis, -20 * axis
    rows[tokenizer.eos_token_id] = 1000 * step
    return rows
