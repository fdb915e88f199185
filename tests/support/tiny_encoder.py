"""A sentence encoder of one layer with random weights, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def save_tiny_encoder(folder: Path, words: Sequence[str]) -> str:
    """Saves a BERT with mean pooling whose vocabulary is ``words``; returns the folder's name."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "mask_token": "[MASK]"}
    vocabulary = {word: i for i, word in enumerate([*special.values(), *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    torch.manual_seed(0)
    size = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=len(vocabulary), **size)).save_pretrained(folder)
    return str(folder)
