"""The cache policy of a run: Inspect AI's cache of replies, with everything in the key that identifies the model."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import CachePolicy, Model
from inspect_ai.solver import TaskState

from qabench.io.files import run_replies_dir
from qabench.llm.endpoint import clean_url

COUNTS = "replies"  # in the metadata of a sample: {"all": number of replies, "cached": those from the cache}
FOLDER_VARIABLE = "INSPECT_CACHE_DIR"  # where Inspect keeps replies
ADDRESSED = ("openai-api/", "openai-api-completions/")  # Inspect's providers for any address: chat, plain completion
SECRETS = ("api_key",)  # arguments of providers that do not identify the model

_caching: ContextVar[bool] = ContextVar("qabench_caches_replies", default=False)
_policies: WeakKeyDictionary[Model, CachePolicy] = WeakKeyDictionary()


@contextmanager
def caching_replies(enabled: bool) -> Iterator[None]:
    """Make the tasks' calls use the cache, which only the user can read."""
    token = _caching.set(enabled)
    before = os.environ.get(FOLDER_VARIABLE)
    if enabled:
        run_replies_dir().mkdir(mode=0o700, parents=True, exist_ok=True)
        os.environ[FOLDER_VARIABLE] = str(run_replies_dir())
    try:
        yield
    finally:
        _caching.reset(token)
        if enabled and before is None:
            del os.environ[FOLDER_VARIABLE]
        elif enabled and before is not None:
            os.environ[FOLDER_VARIABLE] = before


def cache_argument(model: Model, sample: int | None = None) -> dict[str, Any]:
    """Return the argument ``cache`` of a call of a model, which is not written to the log.

    There is none outside of ``caching_replies``, as in ``inspect eval``, where the user's options decide; but of
    several samples of one prompt, none is cached there, because they would be equal.

    Args:
        model: the model.
        sample: the number of the sample, if the same prompt is sent several times.
    """
    if not _caching.get():
        return {} if sample is None else {"cache": False}
    if model not in _policies:  # the files of a model are looked at once
        _policies[model] = CachePolicy(expiry=None, scopes=model_identity(model))
    policy = _policies[model]
    if sample is not None:
        policy = policy.model_copy(update={"scopes": policy.scopes | {"sample": str(sample)}})
    return {"cache": policy}


def model_identity(model: Model) -> dict[str, str]:
    """Return what identifies a model: provider, name, base URL, arguments, and the state of its local files."""
    provider, _, name = str(model).partition("/")
    arguments = {key: value for key, value in model.model_args.items() if key not in SECRETS}
    return {
        "provider": provider,
        "name": name,
        "base_url": model.api.base_url or configured_base_url(str(model)) or "",
        "model_args": json.dumps(arguments, sort_keys=True, default=repr),
        "files": _files_digest([name, *_texts(arguments)]),
    }


def configured_base_url(model: str) -> str | None:
    """Return the address for the provider of a model in the user's environment."""
    parts = model.split("/")
    provider = parts[1] if f"{parts[0]}/" in ADDRESSED and len(parts) > 1 else parts[0]
    value = os.environ.get(f"{provider.upper().replace('-', '_')}_BASE_URL")
    return clean_url(value) if value else None


def count_replies(state: TaskState) -> None:
    """Write the number of replies so far, and of those from the cache, to the sample's metadata."""
    calls = [event for event in transcript().events if isinstance(event, ModelEvent)]
    replies = [call for call in calls if not call.pending and not call.error]
    cached = sum(call.cache == "read" for call in replies)
    state.metadata[COUNTS] = {"all": len(replies), "cached": cached}


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return []
    return [text for part in value for text in _texts(part)]


def _files_digest(names: Iterable[str]) -> str:
    """Return a digest of the sizes and modification times of the files at these paths; "" if there are none."""
    states = []
    for path in map(Path, names):
        files = [path] if path.is_file() else sorted(path.rglob("*")) if path.is_dir() else []
        for file in files:
            if file.is_file():
                state = file.stat()
                states.append((str(file.relative_to(path)), state.st_size, state.st_mtime_ns))
    return hashlib.sha256(repr(states).encode()).hexdigest() if states else ""
