"""The logits of a T5 on a CPU, without padding.

The function and the weights are those of the network of transformers. All linear layers read the prompts of a batch as
one sequence of tokens; only attention takes them one by one. The decoder reads a few positions, and so its queries
are projected onto the encoder's states, instead of all states onto keys and values: q (K h) = (q K) h. That saves a
seventh of the multiplications.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.functional import gelu, scaled_dot_product_attention
from torch.nn.utils.rnn import pad_sequence
from transformers.activations import NewGELUActivation


class UnpaddedT5:
    """A T5 or mT5 of transformers.

    Args:
        network: on a CPU, in evaluation mode.
        longest: the maximum number of tokens of a prompt.
    """

    def __init__(self, network: Any, longest: int) -> None:
        self.network = network
        with torch.inference_mode():
            self.bias = _bias(network.encoder, longest)

    def logits(self, prompts: Sequence[Sequence[int]], starts: Sequence[int]) -> Any:
        """Return the logits of the token after each of the decoder's first tokens: prompts x starts x vocabulary."""
        with torch.inference_mode():
            return self._decoded(self._encoded(prompts), starts)

    def _encoded(self, prompts: Sequence[Sequence[int]]) -> list[Any]:
        """Return the encoder's states of each prompt: tokens x d_model."""
        encoder, sizes = self.network.encoder, [len(prompt) for prompt in prompts]
        hidden = encoder.embed_tokens(torch.tensor([token for prompt in prompts for token in prompt]))
        for block in encoder.block:
            own, feed_forward = block.layer
            projected = _projected(own.SelfAttention, own.layer_norm(hidden))
            parts = zip(*(part.split(sizes, 1) for part in projected), strict=True)
            attended = [_attended(q, k, v, self.bias[:, : q.shape[1], : q.shape[1]]) for q, k, v in parts]
            hidden = _fed(feed_forward, hidden + own.SelfAttention.o(torch.cat(attended)))
        return list(encoder.final_layer_norm(hidden).split(sizes))

    def _decoded(self, states: Sequence[Any], starts: Sequence[int]) -> Any:
        decoder, n = self.network.decoder, len(starts)
        padded = pad_sequence(states, batch_first=True)
        absent = torch.arange(padded.shape[1]) >= torch.tensor([len(one) for one in states])[:, None]
        bias = _bias(decoder, n).masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf)
        hidden = decoder.embed_tokens(torch.tensor(starts)).expand(len(states), -1, -1)
        for block in decoder.block:
            own, cross, feed_forward = block.layer
            query, key, value = _projected(own.SelfAttention, own.layer_norm(hidden))
            hidden = hidden + own.SelfAttention.o(_attended(query, key, value, bias))
            hidden = hidden + _read(cross.EncDecAttention, cross.layer_norm(hidden), padded, absent)
            hidden = _fed(feed_forward, hidden)
        hidden = decoder.final_layer_norm(hidden)
        if getattr(self.network.config, "scale_decoder_outputs", False):
            hidden = hidden * self.network.model_dim**-0.5
        return self.network.lm_head(hidden)


def _projected(attention: Any, hidden: Any) -> list[Any]:
    """Queries, keys and values: ... x heads x tokens x d_kv."""
    parts = (part(hidden) for part in (attention.q, attention.k, attention.v))
    return [part.unflatten(-1, (attention.n_heads, -1)).transpose(-2, -3) for part in parts]


def _attended(query: Any, key: Any, value: Any, bias: Any) -> Any:
    """Attention with T5's bias and without scaling: ... x tokens x (heads * d_kv)."""
    if query.dim() == 3:  # the fast kernel needs a batch
        return _attended(query[None], key[None], value[None], bias)[0]
    return scaled_dot_product_attention(query, key, value, bias[None], scale=1.0).transpose(-2, -3).flatten(-2)


def _fed(layer: Any, hidden: Any) -> Any:
    """Return the feed-forward layer; with T5 1.1's GELU in one pass instead of eight."""
    dense = layer.DenseReluDense
    if not (hasattr(dense, "wi_0") and isinstance(dense.act, NewGELUActivation) and hidden.dtype == torch.float32):
        return layer(hidden)
    states = layer.layer_norm(hidden)
    return hidden + dense.wo(gelu(dense.wi_0(states), approximate="tanh") * dense.wi_1(states))


def _read(attention: Any, hidden: Any, states: Any, absent: Any) -> Any:
    """Cross-attention of the decoder's positions to the encoder's states."""
    heads, width = attention.n_heads, states.shape[-1]
    to_keys, to_values = (part.weight.view(heads, -1, width) for part in (attention.k, attention.v))
    query = torch.einsum("bphk,hkd->bphd", attention.q(hidden).unflatten(-1, (heads, -1)), to_keys).flatten(1, 2)
    scores = (query @ states.transpose(1, 2)).masked_fill(absent[:, None], -torch.inf)
    mixed = (scores.softmax(-1) @ states).unflatten(1, (-1, heads))
    return attention.o(torch.einsum("bphd,hkd->bphk", mixed, to_values).flatten(-2))


def _bias(stack: Any, size: int) -> Any:
    """Return the bias of relative positions: heads x size x size."""
    return stack.block[0].layer[0].SelfAttention.compute_bias(size, size)[0].contiguous()
