"""The connection to the Hub: errors with advice, and limits on the time and size of its answers."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from qabench.errors import InputError, QabenchError
from qabench.io.tables import keep_secret, printable
from qabench.io.workers import run_job

if TYPE_CHECKING:
    from huggingface_hub import HfApi

MAX_SILENT_SECONDS = 120.0
MAX_ANSWER_SECONDS = 300.0
MAX_ANSWER_BYTES = 100_000_000
MIN_BYTES_PER_SECOND = 20_000  # of an upload, on average
_ADVICE = {
    401: "the token is not valid, or has expired: `hf auth login`, or set HF_TOKEN",
    402: "this requires a paid plan",
    403: "the token needs write access, and its owner must be a member of the organization",
    404: "the repository or organization does not exist, or the token has no access to it",
    409: "someone else made a change at the same time: run the command again",
    412: "someone else made a change at the same time: run the command again",
    429: "too many requests: wait{wait} and run the command again; it continues where this one stopped",
    500: "it has an internal error: run the command again later; it continues where this one stopped",
}


class HubError(QabenchError):
    """The Hub rejected a request, or could not be reached."""


@contextmanager
def hub_errors(api: HfApi) -> Iterator[None]:
    """Turn every error of the Hub, or of the connection to it, into a HubError with advice."""
    from huggingface_hub import get_token

    keep_secret(get_token() or "")
    try:
        yield
    except QabenchError:
        raise
    except Exception as error:  # from huggingface_hub, httpx2 or hf_xet, which have no common base class
        raise _explained(error, api.endpoint) from error


@contextmanager
def bounded_answers() -> Iterator[None]:
    """Limit the answers to huggingface_hub, whose own client has no timeout, in time and size.

    A server is given up if it sends nothing for ``MAX_SILENT_SECONDS``, or if the headers or the content of its answer
    take longer than ``MAX_ANSWER_SECONDS`` or the content is larger than ``MAX_ANSWER_BYTES``.
    """
    from httpx2 import Client, ReadError, ReadTimeout, SyncByteStream, Timeout
    from huggingface_hub import get_session, set_client_factory

    hooks = get_session().event_hooks  # of huggingface_hub: they check HF_HUB_OFFLINE, and name the request

    class CountedStream(SyncByteStream):
        """A stream that counts its bytes, and fails beyond limits of time and size."""

        def __init__(self, stream: Any, seconds: float = math.inf, most_bytes: float = math.inf) -> None:
            self.stream, self.seconds, self.most_bytes, self.size = stream, seconds, most_bytes, 0

        def __iter__(self) -> Iterator[bytes]:
            start = time.monotonic()
            for part in self.stream:
                self.size += len(part)
                if time.monotonic() - start > self.seconds:
                    raise ReadTimeout(f"the answer is not complete after {self.seconds:.0f} seconds")
                if self.size > self.most_bytes:
                    raise ReadError(f"the answer has more than {self.most_bytes:,} bytes")
                yield part

        def close(self) -> None:
            self.stream.close()

    def limit_answer(response: Any) -> None:
        response.stream = CountedStream(response.stream, MAX_ANSWER_SECONDS, MAX_ANSWER_BYTES)

    class BoundedClient(Client):
        def send(self, request: Any, **options: Any) -> Any:
            # Some calls of huggingface_hub turn the client's timeout off.
            request.extensions["timeout"] = Timeout(MAX_SILENT_SECONDS).as_dict()
            request.stream = upload = CountedStream(request.stream)
            # In a daemon thread, because httpx2's timeouts are per read, so that they do not end headers sent slowly.
            future: Future[Any] = Future()
            job = partial(super().send, request, **options)
            threading.Thread(target=run_job, args=(future, job), daemon=True).start()
            start = time.monotonic()
            while (left := start + MAX_ANSWER_SECONDS + upload.size / MIN_BYTES_PER_SECOND - time.monotonic()) > 0:
                if wait([future], left).done:
                    return future.result()
            raise ReadTimeout(f"no answer within {time.monotonic() - start:.0f} seconds", request=request)

    bounded = {**hooks, "response": [limit_answer, *hooks.get("response", ())]}
    set_client_factory(lambda: BoundedClient(event_hooks=bounded, follow_redirects=True))
    try:
        yield
    finally:
        set_client_factory(lambda: Client(event_hooks=hooks, follow_redirects=True, timeout=None))


def check_name(what: str, repo_id: str, example: str) -> None:
    """Raise InputError unless a name is that of a repository on the Hub, such as ``example``."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(repo_id)
        if repo_id.count("/") != 1:
            raise HFValidationError("an owner and a name are needed")
    except HFValidationError as error:
        allowed = f"allowed: names such as {example}"
        raise InputError(f"{what} is {repo_id!r}, which is not a name on the Hub; {allowed} ({error})") from None


def require_token(api: HfApi) -> None:
    """Raise a QabenchError if there is no token for the Hub."""
    from huggingface_hub import get_token

    if get_token() is None:
        raise QabenchError(
            f"no token for {api.endpoint}: create one with write access (in the settings of your account, under Access "
            "Tokens), then run `hf auth login` or set HF_TOKEN. Nothing was published"
        )


def _explained(error: Exception, endpoint: str) -> HubError:
    """Return the HubError with advice for an exception of huggingface_hub."""
    from httpx2 import ConnectError, ConnectTimeout, HTTPError, ProxyError, UnsupportedProtocol
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    for cause in _causes(error):  # a failed upload is a RuntimeError without the reason
        if isinstance(cause, OfflineModeIsEnabled):
            return HubError("HF_HUB_OFFLINE is set, so nothing can be sent: unset it")
        if isinstance(cause, HfHubHTTPError):
            status = cause.response.status_code
            seconds = cause.response.headers.get("Retry-After")
            advice = _ADVICE.get(min(status, 500), "unexpected").format(wait=f" {seconds} seconds" if seconds else "")
            message = f" ({cause.server_message})" if cause.server_message else ""
            return HubError(f"{endpoint} answers {status}{message}: {advice}")
        if isinstance(cause, ConnectError | ConnectTimeout | ProxyError | UnsupportedProtocol):
            return HubError(f"{endpoint} cannot be reached ({cause}): check the network and HF_ENDPOINT")
        if isinstance(cause, HTTPError | ConnectionError | TimeoutError):
            return HubError(
                f"the connection to {endpoint} broke ({type(cause).__name__}: {cause}): run the command again; it "
                "continues where this one stopped"
            )
    malformed = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
    if fault := next((cause for cause in _causes(error) if isinstance(cause, malformed)), None):
        what = f"{type(fault).__name__}: {printable(fault, 200)}"
        return HubError(f"{endpoint} gave an answer that is not the Hub's ({what}): check HF_ENDPOINT")
    return HubError(f"{endpoint}: {type(error).__name__}: {error}")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
