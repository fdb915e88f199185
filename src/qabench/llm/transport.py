"""A limit of size for HTTP responses, applied while they are read."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import ExitStack, aclosing, contextmanager, suppress
from importlib import import_module
from typing import Any

from qabench.errors import InputError
from qabench.io.limits import MAX_REPLY_CHARACTERS
from qabench.llm.exchange import UnreadableReply

LIMIT_VARIABLE = "QABENCH_MAX_REPLY_MB"
Send = Callable[..., Awaitable[Any]]


def max_reply_bytes() -> int:
    """Return the maximum size of a response in bytes: QABENCH_MAX_REPLY_MB, or 16 MiB.

    Raises:
        InputError: the variable is not a positive whole number.
    """
    text = os.environ.get(LIMIT_VARIABLE)
    if not text:
        return MAX_REPLY_CHARACTERS
    if not (text.isascii() and text.isdecimal() and 0 < int(text[:10]) <= 1 << 20):
        raise InputError(f"{LIMIT_VARIABLE} is {text!r}; allowed: a number of MiB from 1 to {1 << 20:,}")
    return int(text) << 20


@contextmanager
def limited_replies() -> Iterator[None]:
    """Limit the responses to all asynchronous calls of this process, for clients that other packages create.

    A larger response is replaced by one with status 413 and the limit as its message, because clients repeat a call
    that ends with an exception. A response that the client reads piece by piece ends with ``UnreadableReply``.
    """
    most = max_reply_bytes()
    with ExitStack() as stack:
        for name in ("httpx", "httpx2"):
            with suppress(ImportError):
                package = import_module(name)
                client = package.AsyncClient
                stack.callback(setattr, client, "send", client.send)
                client.send = _or_refused(limited(client.send, most), package.Response)
        yield


def limited(unlimited: Send, most: int) -> Send:
    """Return ``AsyncClient.send`` with a limit in bytes after decompression, as a function or as a bound method.

    A larger response, or a compressed one that expands to more, ends with ``UnreadableReply`` as soon as the limit is
    passed; the rest is not read.
    """

    async def send(*arguments: Any, stream: bool = False, **options: Any) -> Any:
        response = await unlimited(*arguments, stream=True, **options)
        read = response.aiter_bytes

        async def aiter_bytes(chunk_size: int | None = None) -> AsyncGenerator[bytes, None]:
            size = 0
            async with aclosing(read(chunk_size)) as chunks:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > most:
                        message = f"the reply is larger than {most >> 20} MiB ({LIMIT_VARIABLE})"
                        raise UnreadableReply(message, too_large=True)
                    yield chunk

        response.aiter_bytes = aiter_bytes
        if not stream:
            try:
                await response.aread()
            except BaseException:
                await response.aclose()
                raise
        return response

    return send


def _or_refused(send: Send, response: Any) -> Send:
    async def refusing(client: Any, request: Any, **options: Any) -> Any:
        try:
            return await send(client, request, **options)
        except UnreadableReply as error:
            return response(413, json={"error": {"message": str(error)}}, request=request)

    return refusing
