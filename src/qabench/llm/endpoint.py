"""Endpoints: any OpenAI-compatible server, OpenAI itself, or Hugging Face's router to models on the Hub."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from qabench.errors import InputError, MissingExtra
from qabench.io.addresses import origin
from qabench.io.environment import JUDGE_BASE_URL, JUDGE_KEY
from qabench.io.tables import keep_secret

OPENAI = "https://api.openai.com/v1"
HUGGINGFACE = "https://router.huggingface.co/v1"
_SECRET = re.compile(r"key|token|secret|password|^sig$", re.IGNORECASE)
# Inspect's providers for any address: chat, plain completion
ADDRESSED = ("openai-api/", "openai-api-completions/")
ACCOUNT = ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_CUSTOM_HEADERS", "OPENAI_ADMIN_KEY")
NO_KEY = "no-key"  # sent to servers that need no key, because the openai package requires one


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server's base URL (before "/chat/completions") and its API key, which is never printed or stored.

    Attributes:
        why_unusable: why no call can be made, if a required key is missing.
        withheld: how to send the environment's key to this server, if it belongs to another host.
            Shown if the server asks for a key.
    """

    base_url: str
    api_key: str = field(repr=False)
    why_unusable: str | None = None
    withheld: str | None = None

    def __post_init__(self) -> None:
        keep_secret(self.api_key)

    def openai_client(self, http_client: Any, max_retries: int = 0) -> Any:
        """Return an ``openai.OpenAI`` that sends this key, and nothing of OPENAI_... variables."""
        try:
            import openai
        except ImportError:
            raise MissingExtra(
                "calls to language models and embeddings APIs need openai: pip install 'qabench[judge]'"
            ) from None
        parts = urlsplit(self.base_url)
        kind: Any = openai.OpenAI
        client = kind(
            base_url=urlunsplit(parts._replace(query="")),
            default_query=dict(parse_qsl(parts.query)),
            api_key=self.api_key,
            # The package replaces None with OPENAI_... variables.
            **dict.fromkeys(("admin_api_key", "organization", "project", "webhook_secret"), ""),
            default_headers={"Authorization": f"Bearer {self.api_key}"},
            http_client=http_client,
            max_retries=max_retries,
            timeout=None,
        )
        client.organization = client.project = None
        return client


@contextmanager
def without_account(model: str) -> Iterator[None]:
    """Hide the user's OpenAI account from Inspect's client of a model at an address: the openai package would send it.

    The package reads the variables when a client is made.
    """
    names = ACCOUNT if model.startswith(ADDRESSED) else ()
    hidden = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(hidden)


def resolve_endpoint(base_url: str | None = None, api_key: str | None = None) -> Endpoint:
    """Return the endpoint that arguments and environment variables describe.

    Each key is bound to a host: FANOUTQA_OPENAI_API_KEY to the host of FANOUTQA_OPENAI_API_BASE
    (default: OpenAI), the Hub's token to Hugging Face's router. Another server gets a key only as
    ``api_key``, because ``base_url`` can come from a log or a configuration file. OPENAI_API_KEY
    and OPENAI_BASE_URL are never read, so that nobody spends money by accident.

    Args:
        base_url: an OpenAI-compatible server. "huggingface" for Hub-hosted models through Hugging
            Face's router, or None for FANOUTQA_OPENAI_API_BASE, else OpenAI.
        api_key: the key for this server, or None for the one in the environment that is bound to
            its host. The router's is FANOUTQA_OPENAI_API_KEY if that is a token of the Hub
            ("hf_..."), else HF_TOKEN or the token of ``hf auth login``.
    """
    default = clean_url(os.environ.get(JUDGE_BASE_URL) or OPENAI)
    url = clean_url(base_url) if base_url else default
    bound, server = os.environ.get(JUDGE_KEY, "").strip(), origin(url)
    key, needs, withheld = (api_key or "").strip(), None, None
    if key:
        pass
    elif server == origin(HUGGINGFACE):
        from huggingface_hub import get_token

        key = bound if bound.startswith("hf_") else get_token() or ""
        needs = "no token for Hugging Face's router: set HF_TOKEN, or log in with `hf auth login`"
    elif server == origin(default):
        key = bound
        if server == origin(OPENAI):
            needs = f"no key: set {JUDGE_KEY} (OPENAI_API_KEY is not read, so that nobody spends money by accident)"
    elif server == origin(OPENAI):
        needs = f"{JUDGE_KEY} is the key of {default} ({JUDGE_BASE_URL}), not of {OPENAI}: unset {JUDGE_BASE_URL}"
    elif bound:
        withheld = f"{JUDGE_KEY} was not sent, because {JUDGE_BASE_URL} does not name this server; set it to {url}"
    if not key.isascii() or not key.isprintable():
        raise InputError(
            "the API key contains characters that are not allowed in keys. Was something else pasted?"
        )
    return Endpoint(url, key or NO_KEY, None if key else needs, withheld)


def key_for_typed(base_url: str | None) -> str | None:
    """Return the environment's key for a server whose address the user typed in this call, or None for other servers.

    Commands pass it as ``api_key`` next to their option ``--base-url``. Never use it with an
    address from a file: the file would choose who gets the key.
    """
    if (
        not base_url
        or os.environ.get(JUDGE_BASE_URL)
        or origin(clean_url(base_url)) == origin(HUGGINGFACE)
    ):
        return None  # the key is bound to the server that the environment names
    return os.environ.get(JUDGE_KEY, "").strip() or None


def clean_url(base_url: str) -> str:
    """Return a base URL without a trailing slash, or raise InputError.

    "huggingface" is Hugging Face's router.
    """
    url = HUGGINGFACE if base_url.lower() in ("huggingface", "hf") else base_url.strip()
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if it is out of range
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"the base URL is {base_url!r}; it must be such as {OPENAI}, or huggingface")
    if parts.username or parts.password:
        raise InputError(
            "the base URL contains a user name or password. Pass the secret as the API key instead"
        )
    if secret := next((name for name, _ in parse_qsl(parts.query) if _SECRET.search(name)), None):
        raise InputError(
            f"the base URL contains the parameter {secret!r}, which would be logged; pass the secret as the API key"
        )
    path = parts.path.rstrip("/").removesuffix("/chat/completions")
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
