"""Errors of the Hub and of the connection to it, with advice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from qabench.errors import QabenchError

if TYPE_CHECKING:
    from huggingface_hub.errors import HfHubHTTPError

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

    def __init__(self, message: str, stops: bool) -> None:
        super().__init__(message)
        self.stops = stops


def explained(error: Exception, endpoint: str) -> HubError:
    """The ``HubError`` for an exception of huggingface_hub, with advice in its message.

    An exception of an unknown type becomes a ``HubError`` with this type and its message.

    Args:
        error: raised by a function of huggingface_hub.
        endpoint: the URL of the Hub.
    """
    from httpx2 import ConnectError, ConnectTimeout, HTTPError, ProxyError, UnsupportedProtocol
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled

    for cause in _causes(error):  # a failed upload is a RuntimeError without the reason
        if isinstance(cause, OfflineModeIsEnabled):
            return HubError("HF_HUB_OFFLINE is set, so nothing can be sent: unset it", stops=True)
        if isinstance(cause, LocalTokenNotFoundError):
            return HubError(no_token(endpoint), stops=True)
        if isinstance(cause, HfHubHTTPError):
            return _refused(cause, endpoint)
        if isinstance(cause, ConnectError | ConnectTimeout | ProxyError | UnsupportedProtocol):
            return HubError(f"{endpoint} cannot be reached ({cause}): check the network and HF_ENDPOINT", stops=True)
        if isinstance(cause, HTTPError | ConnectionError | TimeoutError):
            return HubError(
                f"the connection to {endpoint} broke ({type(cause).__name__}: {cause}): run the command again; it "
                "continues where this one stopped",
                stops=False,
            )
    return HubError(f"{type(error).__name__}: {error}", stops=False)


def no_token(endpoint: str) -> str:
    """The error message for a missing token."""
    return (
        f"no token for {endpoint}: create one with write access (in the settings of your account, under Access "
        "Tokens), then run `hf auth login` or set HF_TOKEN"
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _refused(error: HfHubHTTPError, endpoint: str) -> HubError:
    status = error.response.status_code
    seconds = error.response.headers.get("Retry-After")
    advice = _ADVICE.get(status, "").format(wait=f" {seconds} seconds" if seconds else "")
    if status >= 500:
        advice = "it has an internal error: run the command again later; it continues where this one stopped"
    said = f" ({error.server_message})" if error.server_message else ""
    return HubError(f"{endpoint} answers {status}{said}: {advice or 'unexpected'}", status in _STOPPING)
