"""A limit of size for HTTP responses, applied while they are read."""

from __future__ import annotations

import os
from typing import Any

from qabench.errors import InputError
from qabench.limits import MAX_REPLY_CHARACTERS
from qabench.llm.exchange import UnreadableReply

LIMIT_VARIABLE = "QABENCH_MAX_REPLY_MB"
CODINGS = ("content-encoding", "content-length", "transfer-encoding")  # no longer true of a body that was read


def max_reply_bytes() -> int:
    """The most bytes of a response: QABENCH_MAX_REPLY_MB, or 16 MiB.

    Raises:
        InputError: the variable is not a positive whole number.
    """
    text = os.environ.get(LIMIT_VARIABLE)
    if not text:
        return MAX_REPLY_CHARACTERS
    if not (text.isascii() and text.isdecimal() and 0 < int(text[:10]) <= 1 << 20):
        raise InputError(f"{LIMIT_VARIABLE} is {text!r}; allowed: a number of MiB from 1 to {1 << 20:,}")
    return int(text) << 20


def limited_client(most: int) -> Any:
    """An HTTP client for the openai package whose responses have at most ``most`` bytes after decompression.

    A larger response, or a compressed one that expands to more, ends the call with ``UnreadableReply`` as soon as the
    limit is passed; the rest is not read.
    """
    import httpx2
    from openai import DefaultAsyncHttpx2Client

    client: Any = DefaultAsyncHttpx2Client()
    unlimited = client.send

    async def send(request: httpx2.Request, **options: Any) -> httpx2.Response:
        response = await unlimited(request, **{**options, "stream": True})
        body = bytearray()
        try:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > most:
                    raise UnreadableReply(f"the reply is larger than {most >> 20} MiB ({LIMIT_VARIABLE})")
        finally:
            await response.aclose()
        headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in CODINGS]
        return httpx2.Response(
            response.status_code,
            headers=headers,
            content=bytes(body),
            request=response.request,
            extensions=response.extensions,
            history=response.history,
        )

    client.send = send  # not a custom transport: with one, httpx2 ignores the proxies of the environment
    return client
