"""Endpoints: where a model is asked, and with which key.

An endpoint is any OpenAI-compatible server, OpenAI itself, Hugging Face's router to models on the
Hub, or an Inspect AI provider.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from qabench.errors import InputError, MissingExtra
from qabench.io.addresses import origin
from qabench.io.redaction import keep_secret

OPENAI = "https://api.openai.com/v1"
# The URL prefix of an endpoint that is an Inspect AI provider.
INSPECT = "inspect:"
# Inspect's providers that generate in this process, with transformers.
IN_PROCESS = ("hf/",)
HUGGINGFACE = "https://router.huggingface.co/v1"
# The authors of the first benchmark with a judge chose these names. All judges use them.
JUDGE_KEY = "FANOUTQA_OPENAI_API_KEY"
JUDGE_BASE_URL = "FANOUTQA_OPENAI_API_BASE"
_SECRET = re.compile(r"key|token|secret|password|^sig$", re.IGNORECASE)
# Inspect's providers for servers at any address: by chat, and by plain completion.
ADDRESSED = ("openai-api/", "openai-api-completions/")
ACCOUNT = ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_CUSTOM_HEADERS", "OPENAI_ADMIN_KEY")
# Arguments of providers that are secrets. They do not identify the model.
SECRET_ARGUMENTS = ("api_key",)
# The openai package requires a key, even for servers that need none.
NO_KEY = "no-key"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server's base URL, before "/chat/completions", and its API key, which is never printed."""

    base_url: str
    api_key: str = field(repr=False)
    why_unusable: str | None = None
    withheld: str | None = None

    def __post_init__(self) -> None:
        keep_secret(self.api_key)

    def openai_client(self, http_client: Any, max_retries: int = 0) -> Any:
        """Return an ``openai.OpenAI`` that sends this key, and ignores OPENAI_... variables."""
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


def is_another_model(asked: str, name_in_reply: str) -> bool:
    """Tell whether a server's reply names a different model from the one that was asked.

    A server with one model replies with its name whatever was asked for, and a server may resolve
    an alias: both count as different. Providers with their own API reply with names of versions, so
    only models with a prefix in ``ADDRESSED`` are compared.

    Args:
        asked: Inspect's name of the model.
        name_in_reply: the name in the reply, or "" if it has none.
    """
    if not asked.startswith(ADDRESSED) or not name_in_reply:
        return False
    return not f"/{asked}".endswith(f"/{name_in_reply}")


@contextmanager
def without_account(model: str) -> Iterator[None]:
    """Hide the user's OpenAI account from a client, which would send it to another server.

    The openai package reads organization and project from the environment when a client is created.
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


def is_inspect_model(model: str, base_url: str | None) -> bool:
    """Tell whether a judge's name is an Inspect AI model name, such as anthropic/NAME.

    Names on servers may have a slash, too: with an address, in the call or in the environment, the
    name is the server's. OpenAI's own names have no slash.
    """
    return "/" in model and not base_url and not os.environ.get(JUDGE_BASE_URL)


def inspect_endpoint(model: str, model_args: Mapping[str, Any]) -> Endpoint:
    """Return the endpoint of an Inspect model. The cache of replies distinguishes models by it.

    It has the provider, the address that the environment names for it, the arguments of the
    provider, and a digest of the model's local files: everything that a reply depends on.
    """
    provider = model.partition("/")[0]
    for name in SECRET_ARGUMENTS:
        if model_args.get(name):
            keep_secret(str(model_args[name]))
    arguments = {name: value for name, value in model_args.items() if name not in SECRET_ARGUMENTS}
    address = os.environ.get(f"{provider.upper().replace('-', '_')}_BASE_URL", "")
    texts = [model.partition("/")[2], *(text for text in arguments.values() if type(text) is str)]
    parts = [address, json.dumps(arguments, sort_keys=True, default=repr), _files_digest(texts)]
    identity = ""
    if any(parts[:1] + parts[2:]) or arguments:
        identity = "/" + hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
    return Endpoint(f"{INSPECT}{provider}{identity}", NO_KEY)


def _files_digest(names: list[str]) -> str:
    """Return a digest of the names, sizes and times of a local model's files, or "" without files."""
    states = []
    for path in map(Path, filter(None, names)):
        files = [path] if path.is_file() else sorted(path.rglob("*")) if path.is_dir() else []
        for file in files:
            if file.is_file():
                state = file.stat()
                states.append((str(file.relative_to(path)), state.st_size, state.st_mtime_ns))
    return hashlib.sha256(repr(states).encode()).hexdigest() if states else ""


def key_for_typed(base_url: str | None) -> str | None:
    """Return the environment's key for a server whose address the user typed in this call, or None.

    Commands pass it as ``api_key`` next to their option ``--base-url``. Never use it with an
    address from a file: the file would choose who gets the key.
    """
    if (
        not base_url
        or os.environ.get(JUDGE_BASE_URL)
        or origin(clean_url(base_url)) == origin(HUGGINGFACE)
    ):
        # In these cases ``resolve_endpoint`` finds the key that is bound to the server, if any.
        return None
    return os.environ.get(JUDGE_KEY, "").strip() or None


def clean_url(base_url: str) -> str:
    """Return a base URL without "/chat/completions" or a slash at its end.

    "huggingface" stands for Hugging Face's router.

    Raises:
        InputError: it is not a URL, or contains a user, a password or a key.
    """
    url = HUGGINGFACE if base_url.lower() in ("huggingface", "hf") else base_url.strip()
    try:
        parts = urlsplit(url)
        # This raises ValueError if the port is out of range.
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(
            f"the base URL is {base_url!r}; it must be a URL such as {OPENAI}, or huggingface"
        )
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
