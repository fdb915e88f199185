"""Tiny random models of real architectures with byte-level tokenizers, to be fine-tuned in seconds.

As a script with the name of a folder, it saves a chat model for a real server there.
"""

import sys
from pathlib import Path
from typing import Any

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def save_tiny_qwen(folder: Path) -> Path:
    """A chat model with ChatML's template, as Qwen's; ``<|im_end|>`` ends an answer."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer = _byte_level(folder, special, eos="<|im_end|>", pad="<|endoftext|>")
    tokenizer.chat_template = CHATML
    tokenizer.save_pretrained(folder)
    _save(Qwen2ForCausalLM, Qwen2Config(**_decoder(tokenizer)), folder)
    return folder


def save_tiny_chat(folder: Path, seed: int = 0) -> Path:
    """A chat model that writes random letters."""
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = _byte_level(folder, ["<s>", "</s>"], eos="</s>", pad="</s>", bos="<s>")
    tokenizer.chat_template = "{% for message in messages %}<s>{{ message['content'] }}</s>{% endfor %}<s>"
    tokenizer.save_pretrained(folder)
    _save(LlamaForCausalLM, LlamaConfig(**_decoder(tokenizer) | {"max_position_embeddings": 8192}), folder, seed)
    return folder


def save_tiny_llama(folder: Path) -> Path:
    """A model with Llama 2's special tokens and no chat template."""
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = _byte_level(folder, ["<unk>", "<s>", "</s>"], eos="</s>", pad=None, bos="<s>")
    _save(LlamaForCausalLM, LlamaConfig(**_decoder(tokenizer)), folder)
    return folder


def save_tiny_flan(folder: Path) -> Path:
    """A seq2seq model stored as FLAN-T5 is: gated GELU, and output weights of its own."""
    import json

    import torch
    from safetensors.torch import load_file, save_file
    from tokenizers import processors
    from transformers import T5Config, T5ForConditionalGeneration

    tokenizer = _byte_level(folder, ["<pad>", "</s>", "<unk>"], eos="</s>", pad="<pad>")
    template = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer.backend_tokenizer.post_processor = template
    tokenizer.save_pretrained(folder)
    sizes = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2}
    config = T5Config(
        vocab_size=len(tokenizer), feed_forward_proj="gated-gelu", decoder_start_token_id=0, pad_token_id=0,
        eos_token_id=1, **sizes,
    )  # fmt: skip
    _save(T5ForConditionalGeneration, config, folder)
    stored = load_file(folder / "model.safetensors")
    stored["lm_head.weight"] = torch.randn_like(stored["shared.weight"]) * 0.05
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    fields = json.loads((folder / "config.json").read_text()) | {"tie_word_embeddings": False}
    fields.pop("scale_decoder_outputs", None)
    (folder / "config.json").write_text(json.dumps(fields))
    return folder


def _byte_level(folder: Path, special: list[str], eos: str, pad: str | None, bos: str | None = None) -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    symbols = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE(vocab={symbol: i for i, symbol in enumerate(symbols)}, merges=[]))
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=eos, pad_token=pad, bos_token=bos)
    fast.save_pretrained(folder)
    return fast


def _decoder(tokenizer: Any) -> dict[str, Any]:
    sizes = {"vocab_size": len(tokenizer), "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 2048}
    sizes |= dict.fromkeys(("num_hidden_layers", "num_attention_heads", "num_key_value_heads"), 2)
    tokens = {name: getattr(tokenizer, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    # or LoRA could not move the logits of so small a model
    return sizes | tokens | {"initializer_range": 0.2}


def _save(kind: Any, config: Any, folder: Path, seed: int = 0) -> None:
    import torch

    torch.manual_seed(seed)
    kind(config).save_pretrained(folder)


if __name__ == "__main__":
    save_tiny_chat(Path(sys.argv[1]))
