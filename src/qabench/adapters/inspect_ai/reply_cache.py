"""The cache of a run's replies: who uses it, and what identifies a model in it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import anyio
from inspect_ai.model import CachePolicy, ChatMessage, Model

from qabench.io.files import run_replies_dir
from qabench.io.locks import ProcessLock
from qabench.llm.endpoint import ADDRESSED, clean_url

# Inspect keeps replies in the folder that this variable names.
FOLDER_VARIABLE = "INSPECT_CACHE_DIR"
# Secret arguments of providers. They do not identify the model.
SECRETS = ("api_key",)
# The folder, next to Inspect's cache, for locks of replies that are being requested.
LOCKS = "locks"
SECONDS_BETWEEN_LOOKS = 0.1

_caching: ContextVar[bool] = ContextVar("qabench_caches_replies", default=False)
_policies: WeakKeyDictionary[Model, CachePolicy] = WeakKeyDictionary()


def is_caching() -> bool:
    """Tell whether the calls of the tasks use the cache."""
    return _caching.get()


@contextmanager
def caching_replies(enabled: bool) -> Iterator[None]:
    """If ``enabled``, make the tasks' calls use the cache, which only the user can read."""
    token = _caching.set(enabled)
    before = os.environ.get(FOLDER_VARIABLE)
    if enabled:
        run_replies_dir().mkdir(mode=0o700, parents=True, exist_ok=True)
        os.environ[FOLDER_VARIABLE] = str(run_replies_dir())
    try:
        yield
    finally:
        _caching.reset(token)
        os.environ.pop(FOLDER_VARIABLE, None)
        if before is not None:
            os.environ[FOLDER_VARIABLE] = before


def cache_argument(model: Model, sample: int | None = None) -> dict[str, Any]:
    """Return keyword arguments for a model call: its ``cache`` policy, which is not in the log.

    Outside of ``caching_replies``, as in ``inspect eval``, {} is returned, so that the user's
    options decide. Only a call for one of several samples of a prompt then gets ``cache=False``,
    because the cache would return the same reply for all samples.
    """
    if not _caching.get():
        if sample is None:
            return {}
        return {"cache": False}
    if model not in _policies:
        # Reading a model's files is slow, so it is done once per model.
        _policies[model] = CachePolicy(expiry=None, scopes=model_identity(model))
    policy = _policies[model]
    if sample is not None:
        policy = policy.model_copy(update={"scopes": policy.scopes | {"sample": str(sample)}})
    return {"cache": policy}


@asynccontextmanager
async def asked_once(
    policy: CachePolicy | None, epoch: int, messages: list[ChatMessage]
) -> AsyncIterator[None]:
    """Wait while another process or task makes the same call. Its reply is then in the cache.

    Runs that start together (the jobs of a cluster) ask the same questions at the same time.
    Inspect looks into its cache before the call, and at that time none of them has a reply.

    Args:
        policy: how the reply is cached. None if it is not.
        epoch: the number of the sample's epoch. Epochs do not share replies.
        messages: what the model is asked.
    """
    if policy is None:
        yield
        return
    # Inspect gives equal messages different ids.
    texts = [message.model_dump_json(exclude={"id"}) for message in messages]
    key = json.dumps([policy.scopes, epoch, texts], sort_keys=True)
    folder = run_replies_dir() / LOCKS
    with suppress(OSError):
        # In a folder that cannot be written, there is neither a cache nor a lock.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = ProcessLock(folder / hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest())
    while not lock.try_acquire():
        await anyio.sleep(SECONDS_BETWEEN_LOOKS)
    try:
        yield
    finally:
        lock.release()


def model_identity(model: Model) -> dict[str, str]:
    """Return what identifies a model in the cache, with the sizes and times of its local files."""
    provider, _, name = str(model).partition("/")
    arguments = dict(model.model_args)
    for secret in SECRETS:
        arguments.pop(secret, None)
    # Any of these may be the path of weights, which may change while the path stays the same.
    names = [name, *(text for text in arguments.values() if isinstance(text, str))]
    return {
        "provider": provider,
        "name": name,
        "base_url": model.api.base_url or configured_base_url(str(model)) or "",
        "model_args": json.dumps(arguments, sort_keys=True, default=repr),
        "files": _files_digest(names),
    }


def configured_base_url(model: str) -> str | None:
    """Return the address that the user's environment sets for a model's provider, or None."""
    provider, _, name = model.partition("/")
    if f"{provider}/" in ADDRESSED and name:
        provider = name.partition("/")[0]
    value = os.environ.get(f"{provider.upper().replace('-', '_')}_BASE_URL")
    if not value:
        return None
    return clean_url(value)


def _files_digest(names: Iterable[str]) -> str:
    """Return a digest of the sizes and modification times of files, or "" without files."""
    states = []
    for path in map(Path, names):
        files = [path]
        if path.is_dir():
            files = sorted(path.rglob("*"))
        for file in files:
            if file.is_file():
                state = file.stat()
                states.append((str(file.relative_to(path)), state.st_size, state.st_mtime_ns))
    if not states:
        return ""
    return hashlib.sha256(repr(states).encode()).hexdigest()
