"""Estimates of tokens, for costs before the first call and for servers that report no tokens."""

from __future__ import annotations

from qabench.llm.exchange import ChatRequest

# English has about 4 bytes per token.
BYTES_PER_TOKEN = 4
TOKENS_PER_MESSAGE = 4
EXPECTED_REPLY_TOKENS = 300
ESTIMATE = (
    f"tokens are estimated: {BYTES_PER_TOKEN} bytes of UTF-8 per token of the prompt, and {EXPECTED_REPLY_TOKENS} "
    "tokens per reply (or the limit of the request if it is lower)"
)


def prompt_tokens(request: ChatRequest) -> int:
    """Estimate a prompt's tokens. Real tokenizers differ by model, and have to be downloaded."""
    sizes = [len(text.encode("utf-8", "replace")) for _, text in request.messages]
    return sum(-(-size // BYTES_PER_TOKEN) + TOKENS_PER_MESSAGE for size in sizes)


def reply_tokens(request: ChatRequest) -> int:
    """Return the estimated number of tokens of a reply."""
    limits = [request.parameters.get(name) for name in ("max_tokens", "max_completion_tokens")]
    return min([EXPECTED_REPLY_TOKENS, *(limit for limit in limits if isinstance(limit, int))])
