"""Writes a tiny BLEURT with random weights to a folder, in the form of the published conversion."""

import json
import random
from pathlib import Path
from typing import Any

WORDS = ["the", "moon", "tide", "sun", "sea", "paper", "of", "a", "yes", "Paris", "Rome", "café", "1998", "-", ",", "("]


def write_vocabulary(folder: Path) -> None:
    import sentencepiece

    chooser = random.Random(0)
    sentences = [" ".join(chooser.choices(WORDS, k=8)) for _ in range(300)]
    size = {"vocab_size": 60, "hard_vocab_limit": False, "model_prefix": str(folder / "spm"), "minloglevel": 2}
    special = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": ["[CLS]", "[SEP]", "[MASK]"]}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(sentences), **size, **special)


def write_tiny_bleurt(folder: Path) -> Any:
    """Writes config.json, spm.model and pytorch_model.bin; returns the network in RemBERT's form."""
    import torch
    from transformers import RemBertConfig, RemBertForSequenceClassification

    write_vocabulary(folder)
    config: dict[str, Any] = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    # far enough from 0 that scores differ
    config |= {"intermediate_size": 64, "initializer_range": 0.3}
    torch.manual_seed(0)
    network = RemBertForSequenceClassification(RemBertConfig(**config, input_embedding_size=16, num_labels=1)).eval()
    renamed = {
        name.replace("embedding_hidden_mapping_in", "embedding_projection").replace("rembert", "bleurt"): weights
        for name, weights in network.state_dict().items()
    }
    # as in the conversion
    renamed["bleurt.embeddings.position_ids"] = torch.arange(512).expand((1, -1))
    torch.save(renamed, folder / "pytorch_model.bin")
    described = config | {"embedding_size": 16, "model_type": "bleurt", "position_embedding_type": "absolute"}
    described |= {"architectures": ["BleurtForSequenceClassification"], "id2label": {"0": "LABEL_0"}}
    (folder / "config.json").write_text(json.dumps(described), encoding="utf-8")
    return network
