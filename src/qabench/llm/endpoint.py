"""Endpoints: any OpenAI-compatible server, OpenAI itself, or Hugging Face's router to models on the Hub."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from qabench.environment import JUDGE_BASE_URL, JUDGE_KEY
from qabench.errors import InputError

OPENAI = "https://api.openai.com/v1"
HUGGINGFACE = "https://router.huggingface.co/v1"
_SECRET = re.compile(r"key|token|secret|password|^sig$", re.IGNORECASE)
NO_KEY = "no-key"  # sent to servers that need no key, because the openai package requires one


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server's base URL and its API key; the key is never printed or stored.

    Attributes:
        base_url: the URL before "/chat/completions", without a trailing slash.
        why_unusable: why no call can be made, if a required key is missing; None if calls can be made.
    """

    base_url: str
    api_key: str = field(repr=False)
    why_unusable: str | None = None


def resolve_endpoint(base_url: str | None = None, api_key: str | None = None) -> Endpoint:
    """The endpoint given by arguments and environment variables.

    OPENAI_API_KEY and OPENAI_BASE_URL are never read, so that nobody spends money by accident.

    Args:
        base_url: an OpenAI-compatible server; "huggingface" for Hub-hosted models through Hugging Face's router; None
            for FANOUTQA_OPENAI_API_BASE, else OpenAI.
        api_key: None for FANOUTQA_OPENAI_API_KEY. Hugging Face's router gets this key only if it is a token of the Hub
            ("hf_..."), else the token that ``huggingface_hub`` finds (HF_TOKEN, ``hf auth login``). Servers other than
            these two may need no key.

    Raises:
        InputError: the base URL is not an http(s) URL, or the key contains characters not allowed in a header.
    """
    url = clean_url(base_url or os.environ.get(JUDGE_BASE_URL) or OPENAI)
    host = urlsplit(url).hostname
    key = (api_key or os.environ.get(JUDGE_KEY, "")).strip()
    needs: str | None = None
    if host == urlsplit(HUGGINGFACE).hostname:
        if not api_key and not key.startswith("hf_"):
            from huggingface_hub import get_token

            key = get_token() or ""
        needs = "no token for Hugging Face's router: set HF_TOKEN, or log in with `hf auth login`"
    elif host == urlsplit(OPENAI).hostname:
        needs = f"no key: set {JUDGE_KEY} (OPENAI_API_KEY is not read, so that nobody spends money by accident)"
    if not key.isascii() or not key.isprintable():
        raise InputError("the API key contains characters that are not allowed in keys; was something else pasted?")
    return Endpoint(url, key or NO_KEY, None if key else needs)


def clean_url(base_url: str) -> str:
    """A base URL without a trailing slash; "huggingface" is Hugging Face's router. Raises InputError if invalid."""
    url = HUGGINGFACE if base_url.lower() in ("huggingface", "hf") else base_url.strip()
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InputError(
            f"the base URL is {base_url!r} ({error}); it must be a URL such as {OPENAI}, or huggingface"
        ) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"the base URL is {base_url!r}; it must be such as {OPENAI}, or huggingface")
    if parts.username or parts.password:
        raise InputError("the base URL contains a user name or password; pass the secret as the API key instead")
    if secret := next((name for name, _ in parse_qsl(parts.query) if _SECRET.search(name)), None):
        raise InputError(
            f"the base URL contains the parameter {secret!r}, which would be logged; pass the secret as the API key"
        )
    path = parts.path.rstrip("/").removesuffix("/chat/completions")
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
