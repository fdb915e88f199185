"""Concurrent, cached chat client: the openai package retries, and a file lock keeps processes from paying twice."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
import warnings
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from qabench.errors import InputError, MissingExtra
from qabench.io.http import retry_after
from qabench.llm.budget import Plan, Prices, plan_of, prompt_tokens, reply_tokens
from qabench.llm.cache import ReplyCache
from qabench.llm.endpoint import Endpoint
from qabench.llm.exchange import ChatRequest, Outcome, UnreadableReply, read_reply
from qabench.llm.reasons import FATAL, reason_of
from qabench.llm.transport import Send, limited, max_reply_bytes

Progress = Callable[[int, int], None]
SECONDS_BETWEEN_LOOKS = 0.2
NO_CREDIT = "insufficient_quota"  # OpenAI's code of a status 429 for which waiting does not help
LONGEST_WAIT = 120.0  # seconds that a server can ask for, as in the openai package
OWN_REASON = "x-qabench-reason"  # marks responses that ``_Calls`` makes, whose message is the whole reason


class ChatClient:
    """Sends requests to an endpoint concurrently, and stores every reply in a cache.

    While this process calls a model of an endpoint, other processes wait, and then use its replies.

    Args:
        endpoint: see ``resolve_endpoint``.
        cache: the cache of replies; default: the user's, shared by all processes.
        concurrency: the maximum number of calls in flight.
        retries: the maximum number of retries of a call that fails for a transient reason.
        timeout: seconds for one call, from sending to the last byte.
        max_calls: the maximum number of calls, including retries.
        max_bytes: the maximum size of a reply, checked while it is read; None for ``transport.max_reply_bytes``.

    Attributes:
        calls: the number of calls made, including ``retried`` ones.
        prompt_tokens: tokens of the prompts of successful calls, as counted by the server, or else estimated.
        completion_tokens: tokens of their replies.

    Raises:
        InputError: an option is out of range.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        cache: ReplyCache | None = None,
        *,
        concurrency: int = 20,
        retries: int = 5,
        timeout: float = 120.0,
        max_calls: int | None = None,
        max_bytes: int | None = None,
    ) -> None:
        if concurrency < 1 or not timeout > 0:
            raise InputError(f"concurrency is {concurrency} and timeout {timeout}; both must be above 0")
        for name, value in (("retries", retries), ("max_calls", max_calls)):
            if value is not None and value < 0:
                raise InputError(f"{name} is {value}; it must be at least 0")
        self.endpoint = endpoint
        self.cache = cache or ReplyCache()
        self.concurrency, self.retries, self.timeout, self.max_calls = concurrency, retries, timeout, max_calls
        self.max_bytes = max_reply_bytes() if max_bytes is None else max_bytes
        self.calls = self.retried = self.prompt_tokens = self.completion_tokens = 0
        self.fatal: str | None = None  # why no further call can succeed
        self.reached = False  # the server has answered a call, possibly with an error

    def plan(self, requests: Sequence[ChatRequest], prices: Prices | None = None) -> Plan:
        """Return the calls that ``complete`` would make, without making them."""
        by_key = self._by_key(requests)
        cached = self.cache.find(by_key)
        self.cache.close()
        return plan_of([request for key, request in by_key.items() if key not in cached], len(cached), prices)

    async def complete(self, requests: Sequence[ChatRequest], progress: Progress | None = None) -> list[Outcome]:
        """Return one outcome per request, in order. Equal requests are sent once.

        If canceled, it stops the calls in flight; replies received so far are in the cache.

        Raises:
            MissingExtra: calls are needed and the openai package is not installed.
        """
        by_key = self._by_key(requests)
        outcomes: dict[bytes, Outcome] = {}

        def report() -> None:
            if progress:
                progress(len(outcomes), len(by_key))

        def missing() -> dict[bytes, ChatRequest]:
            rest = [key for key in by_key if key not in outcomes]
            outcomes.update({key: Outcome(reply, cached=True) for key, reply in self.cache.find(rest).items()})
            return {key: by_key[key] for key in rest if key not in outcomes}

        try:
            rest = missing()
            report()
            if rest and self.endpoint.why_unusable:
                outcomes |= dict.fromkeys(rest, Outcome(reason=f"not sent: {self.endpoint.why_unusable}"))
            elif rest:
                async with AsyncExitStack() as turns:
                    for model in sorted({request.model for request in rest.values()}):
                        await turns.enter_async_context(_turn(self._lock_path(model), model))
                    await self._send(missing(), outcomes, report)
        finally:
            self.cache.close()
        return [outcomes[request.key(self.endpoint.base_url)] for request in requests]

    def _by_key(self, requests: Sequence[ChatRequest]) -> dict[bytes, ChatRequest]:
        return {request.key(self.endpoint.base_url): request for request in requests}

    def _lock_path(self, model: str) -> Path:
        judge = hashlib.sha256(f"{self.endpoint.base_url} {model}".encode()).hexdigest()[:16]
        return self.cache.path.with_name(f"{self.cache.path.name}.{judge}.lock")

    async def _send(
        self, rest: dict[bytes, ChatRequest], outcomes: dict[bytes, Outcome], report: Callable[[], None]
    ) -> None:
        slots = asyncio.Semaphore(self.concurrency)
        async with self._openai_client() as session, asyncio.TaskGroup() as group:

            async def work(key: bytes, request: ChatRequest) -> None:
                async with slots:
                    outcomes[key] = await self._outcome(session, key, request)
                report()

            for key, request in rest.items():
                group.create_task(work(key, request))

    async def _outcome(self, session: Any, key: bytes, request: ChatRequest) -> Outcome:
        import openai

        if self.fatal:
            return Outcome(reason=f"not sent: the endpoint refuses all calls ({self.fatal})")
        try:
            response = await session.chat.completions.with_raw_response.create(**request.body())
        except openai.OpenAIError as error:
            return Outcome(reason=self._reason(error))
        reply = self.cache.store(key, request, read_reply(response.text, self.max_bytes))
        self.prompt_tokens += prompt_tokens(request) if reply.prompt_tokens is None else reply.prompt_tokens
        self.completion_tokens += reply_tokens(request) if reply.completion_tokens is None else reply.completion_tokens
        return Outcome(reply)

    def _reason(self, error: Exception) -> str:
        import openai

        if isinstance(error, openai.APITimeoutError):
            return f"no reply within {self.timeout:g} s"
        reason = reason_of(error)
        if not isinstance(error, openai.APIStatusError):
            return reason.text
        if OWN_REASON in error.response.headers:
            return reason.cause.partition(": ")[2]
        if error.status_code in FATAL or error.code == NO_CREDIT:
            self.fatal = reason.text
        if error.status_code in (401, 403) and self.endpoint.withheld:
            return f"{reason.text}; {self.endpoint.withheld}"
        return reason.text

    def _openai_client(self) -> Any:
        try:
            from openai import AsyncOpenAI, DefaultAsyncHttpx2Client
        except ImportError:
            raise MissingExtra("calls to language models need openai: pip install 'qabench[judge]'") from None
        http: Any = DefaultAsyncHttpx2Client()
        # With a custom transport, httpx2 would ignore the environment's proxies.
        http.send = _Calls(self, limited(http.send, self.max_bytes)).send
        options = {"max_retries": self.retries, "timeout": self.timeout, "http_client": http}
        return self.endpoint.openai_client(AsyncOpenAI, **options)


class _Calls:
    """Sends each call of the openai package, retries included: counts it, limits its time, and checks the reply.

    A response that is made here tells the package whether to retry.
    """

    def __init__(self, client: ChatClient, send: Send) -> None:
        self.client, self._send = client, send

    async def send(self, request: Any, **options: Any) -> Any:
        import httpx2

        client = self.client
        if client.max_calls is not None and client.calls >= client.max_calls:
            return _response(request, f"not sent: the limit of {client.max_calls} calls (max_calls) was reached")
        if client.fatal:
            return _response(request, f"not sent: the endpoint refuses all calls ({client.fatal})")
        client.calls += 1
        client.retried += request.headers.get("x-stainless-retry-count", "0") != "0"
        try:
            # httpx2's timeout applies to each read: a server that sends single bytes would never exceed it.
            async with asyncio.timeout(client.timeout):
                response = await self._send(request, **options)
            client.reached = True
            if response.status_code == 200:
                read_reply(response.text, client.max_bytes)
            elif (retry_after(response.headers.get("retry-after")) or 0) > LONGEST_WAIT or NO_CREDIT in response.text:
                response.headers["x-should-retry"] = "false"
        except TimeoutError as error:
            raise httpx2.ReadTimeout(str(error), request=request) from error
        except UnreadableReply as error:
            return _response(request, str(error), retry=not error.too_large)
        except httpx2.ConnectError as error:
            reason = reason_of(error)
            if client.reached or not reason.permanent:  # a server that has answered before may come back
                raise
            client.fatal = reason.text
            return _response(request, reason.text)
        return response


def _response(request: Any, reason: str, retry: bool = False) -> Any:
    import httpx2

    headers = {OWN_REASON: "1", "x-should-retry": str(retry).lower()}
    return httpx2.Response(502, headers=headers, json={"error": {"message": reason}}, request=request)


_guard = threading.Lock()
_turns: dict[Path, tuple[Any, int]] = {}  # the lock and the number of its users in this process


@asynccontextmanager
async def _turn(path: Path, model: str) -> AsyncIterator[None]:
    """Wait until no other process calls a model of an endpoint. All threads and tasks of a process share its turn."""
    begin, warned = time.monotonic(), False
    while not _enter(path):
        if not warned and time.monotonic() - begin > 1.0:
            warned = True
            message = f"another process is calling {model}: waiting until it has ended, to use its replies"
            warnings.warn(message, stacklevel=2)
        await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
    try:
        yield
    finally:
        with _guard:
            lock, users = _turns.pop(path)
            if users > 1:
                _turns[path] = (lock, users - 1)
            else:
                lock.release()


def _enter(path: Path) -> bool:
    from filelock import FileLock, Timeout

    with _guard:
        lock, users = _turns.get(path, (None, 0))
        if lock is None:
            lock = FileLock(path, thread_local=False)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                lock.acquire(timeout=0)
            except Timeout:
                return False
            except OSError:  # a folder that cannot be written, where the cache cannot be used either
                pass
        _turns[path] = (lock, users + 1)
        return True
