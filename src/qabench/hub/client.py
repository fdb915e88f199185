"""The connection to the Hub: errors with advice, and limits on the time and size of its answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from httpx2 import HTTPError
from huggingface_hub import get_session, get_token, set_client_factory
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled
from huggingface_hub.utils import _http, validate_repo_id  # type: ignore[attr-defined]

from qabench.errors import InputError, QabenchError
from qabench.io.http_error import HttpError, causes
from qabench.io.limits import Limits
from qabench.io.redaction import keep_secret, printable
from qabench.io.transport import limited_client

if TYPE_CHECKING:
    from huggingface_hub import HfApi

# The Hub may take minutes to commit many files.
MAX_SILENT_SECONDS = 120.0
MAX_ANSWER_SECONDS = 300.0
MAX_ANSWER_BYTES = 100_000_000
# Each uploaded part extends the time limit by what it would take at this rate.
MIN_BYTES_PER_SECOND = 20_000
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
    keep_secret(get_token() or "")
    try:
        yield
    except HttpError as error:
        # The answer exceeds a limit of ``bounded_answers``.
        raise HubError(f"{api.endpoint}: {error}") from error
    except QabenchError:
        raise
    # The errors of huggingface_hub, httpx2 and hf_xet have no common base class.
    except Exception as error:
        raise _explained(error, api.endpoint) from error


@contextmanager
def bounded_answers() -> Iterator[None]:
    """Limit the time and size of answers to huggingface_hub, whose own client has no timeout.

    A request fails if the server sends nothing for ``MAX_SILENT_SECONDS``, or if its answer takes
    longer than ``MAX_ANSWER_SECONDS`` or is larger than ``MAX_ANSWER_BYTES``.
    """
    # The hooks of huggingface_hub or of the user's client check HF_HUB_OFFLINE and name the request
    # in errors, so they are kept.
    hooks = get_session().event_hooks
    factory = getattr(_http, "_GLOBAL_CLIENT_FACTORY", None) or _http.default_client_factory
    limits = Limits(
        MAX_ANSWER_BYTES,
        MAX_ANSWER_SECONDS,
        MAX_SILENT_SECONDS,
        MIN_BYTES_PER_SECOND,
        redirects="any",
    )
    set_client_factory(lambda: limited_client(limits, event_hooks=hooks))
    try:
        yield
    finally:
        # huggingface_hub can set a factory, but has no public function that returns the current
        # one.
        set_client_factory(factory)


def check_name(what: str, repo_id: str, example: str) -> None:
    """Raise InputError unless a repository on the Hub can have this name, such as ``example``."""
    try:
        validate_repo_id(repo_id)
        if repo_id.count("/") != 1:
            raise HFValidationError("an owner and a name are needed")
    except HFValidationError as error:
        allowed = f"allowed: names such as {example}"
        raise InputError(
            f"{what} is {repo_id!r}, which is not a name on the Hub; {allowed} ({error})"
        ) from None


def require_token(api: HfApi) -> None:
    """Raise a QabenchError if there is no token for the Hub."""
    if get_token() is None:
        raise QabenchError(
            f"no token for {api.endpoint}: create one with write access (in the settings of your account, under Access "
            "Tokens), then run `hf auth login` or set HF_TOKEN. Nothing was published"
        )


def _explained(error: Exception, endpoint: str) -> HubError:
    """Return the HubError with advice for a huggingface_hub exception."""
    for cause in causes(error):
        # A failed upload is a RuntimeError, and only its cause says why.
        if isinstance(cause, OfflineModeIsEnabled):
            return HubError("HF_HUB_OFFLINE is set, so nothing can be sent: unset it")
        if isinstance(cause, HfHubHTTPError):
            status = cause.response.status_code
            seconds = cause.response.headers.get("Retry-After")
            advice = _ADVICE.get(min(status, 500), "unexpected").format(
                wait=f" {seconds} seconds" if seconds else ""
            )
            message = f" ({cause.server_message})" if cause.server_message else ""
            return HubError(f"{endpoint} answers {status}{message}: {advice}")
        if isinstance(cause, HTTPError | ConnectionError | TimeoutError):
            return HubError(
                f"{endpoint} cannot be reached ({type(cause).__name__}: {cause}): check the network "
                "and HF_ENDPOINT, and run the command again"
            )
    # An answer that is not the Hub's can cause any exception in huggingface_hub.
    return HubError(
        f"{endpoint}: {type(error).__name__}: {printable(error, 200)}: check HF_ENDPOINT"
    )
