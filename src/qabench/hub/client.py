"""The connection to the Hub: errors with advice, and limits on the time and size of its answers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpcore2

from qabench.errors import QabenchError

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

MAX_ANSWER_SECONDS = 300.0
MAX_ANSWER_BYTES = 100_000_000
_ADVICE = {
    400: "it rejects the request",
    401: "the token is not valid, or has expired: `hf auth login`, or set HF_TOKEN",
    402: "this requires a paid plan",
    403: "the token needs write access, and its owner must be a member of the organization",
    404: "the repository or organization does not exist, or the token has no access to it",
    409: "someone else made a change at the same time: run the command again",
    412: "someone else committed at the same time: run the command again",
    413: "a file is too large",
    429: "too many requests: wait{wait} and run the command again; it continues where this one stopped",
}
# All further repositories would fail in the same way.
_STOPPING = {401, 402, 429}


class HubError(QabenchError):
    """The Hub rejected a request, or could not be reached.

    Attributes:
        stops: whether all further repositories would fail in the same way.
    """

    def __init__(self, message: str, stops: bool = False) -> None:
        super().__init__(message)
        self.stops = stops


@contextmanager
def hub_errors(api: HfApi) -> Iterator[None]:
    """Turn every error of the Hub, or of the connection to it, into a HubError with advice."""
    try:
        yield
    except QabenchError:
        raise
    except Exception as error:  # from huggingface_hub, httpx2 or hf_xet, which have no common base class
        raise _explained(error, api.endpoint) from error


@contextmanager
def bounded_answers() -> Iterator[None]:
    """Limit every answer to huggingface_hub to ``MAX_ANSWER_SECONDS`` and ``MAX_ANSWER_BYTES``.

    Its own client has no timeout at all. A timeout alone would not stop a server that sends a byte now and then.
    """
    from huggingface_hub import set_client_factory
    from huggingface_hub.utils._http import default_client_factory

    def client() -> Any:
        bounded = default_client_factory()
        for transport in filter(None, (bounded._transport, *bounded._mounts.values())):
            pool = transport._pool  # type: ignore[attr-defined]
            pool._network_backend = _BoundedBackend(pool._network_backend)
        return bounded

    set_client_factory(client)
    try:
        yield
    finally:
        set_client_factory(default_client_factory)


def require_token(api: HfApi) -> None:
    """Raise a QabenchError if there is no token for the Hub."""
    from huggingface_hub import get_token

    if get_token() is None:
        raise QabenchError(f"{_no_token(api.endpoint)}. Nothing was published")


class _BoundedBackend(httpcore2.NetworkBackend):
    """Opens connections whose answers are limited."""

    def __init__(self, backend: httpcore2.NetworkBackend) -> None:
        self._backend = backend

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        seconds = timeout or MAX_ANSWER_SECONDS
        return _BoundedStream(self._backend.connect_tcp(host, port, seconds, local_address, socket_options))


class _BoundedStream(httpcore2.NetworkStream):
    """A connection that limits what is read between two writes, which is one answer."""

    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream
        self._start_answer()

    def _start_answer(self) -> None:
        self._deadline = time.monotonic() + MAX_ANSWER_SECONDS
        self._received = 0

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout(f"the answer is not complete after {MAX_ANSWER_SECONDS:.0f} seconds")
        data = self._stream.read(max_bytes, min(timeout or left, left))
        self._received += len(data)
        if self._received > MAX_ANSWER_BYTES:
            raise httpcore2.ReadError(f"the answer has more than {MAX_ANSWER_BYTES:,} bytes")
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, timeout or MAX_ANSWER_SECONDS)
        self._start_answer()

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _BoundedStream(self._stream.start_tls(ssl_context, server_hostname, timeout or MAX_ANSWER_SECONDS))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _explained(error: Exception, endpoint: str) -> HubError:
    """Return the HubError with advice for an exception of huggingface_hub."""
    from httpx2 import ConnectError, ConnectTimeout, HTTPError, ProxyError, UnsupportedProtocol
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled

    for cause in _causes(error):  # a failed upload is a RuntimeError without the reason
        if isinstance(cause, OfflineModeIsEnabled):
            return HubError("HF_HUB_OFFLINE is set, so nothing can be sent: unset it", stops=True)
        if isinstance(cause, LocalTokenNotFoundError):
            return HubError(_no_token(endpoint), stops=True)
        if isinstance(cause, HfHubHTTPError):
            return _rejection(cause, endpoint)
        if isinstance(cause, ConnectError | ConnectTimeout | ProxyError | UnsupportedProtocol):
            return HubError(f"{endpoint} cannot be reached ({cause}): check the network and HF_ENDPOINT", stops=True)
        if isinstance(cause, HTTPError | ConnectionError | TimeoutError):
            return HubError(
                f"the connection to {endpoint} broke ({type(cause).__name__}: {cause}): run the command again; it "
                "continues where this one stopped"
            )
    malformed = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
    if cause := next((cause for cause in _causes(error) if isinstance(cause, malformed)), None):
        what = f"{type(cause).__name__}: {str(cause)[:200]}"
        return HubError(f"{endpoint} gave an answer that is not the Hub's ({what}): check HF_ENDPOINT")
    return HubError(f"{endpoint}: {type(error).__name__}: {error}")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _rejection(error: HfHubHTTPError, endpoint: str) -> HubError:
    status = error.response.status_code
    seconds = error.response.headers.get("Retry-After")
    advice = _ADVICE.get(status, "").format(wait=f" {seconds} seconds" if seconds else "")
    if status >= 500:
        advice = "it has an internal error: run the command again later; it continues where this one stopped"
    message = f" ({error.server_message})" if error.server_message else ""
    return HubError(f"{endpoint} answers {status}{message}: {advice or 'unexpected'}", status in _STOPPING)


def _no_token(endpoint: str) -> str:
    return (
        f"no token for {endpoint}: create one with write access (in the settings of your account, under Access "
        "Tokens), then run `hf auth login` or set HF_TOKEN"
    )
