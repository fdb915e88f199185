"""Inspect AI's providers: their names, the arguments of their clients, and what they print.

Runs and judges share these checks. They are apart from the judges' client, which runs do not
import.
"""

from __future__ import annotations

import inspect
import logging
import re
from typing import Any

from qabench.errors import InputError, unknown_name

UNEXPECTED = re.compile(r"\b(\w+)\.__init__\(\) got an unexpected keyword argument '(\w+)'")


def quiet_transformers() -> None:
    """Keep transformers from reporting its own work, such as the loading of weights."""
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    from huggingface_hub.utils.tqdm import enable_progress_bars
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    # Show the progress of downloads.
    enable_progress_bars()


def check_provider(model: str) -> None:
    """Raise InputError if a model's name begins with a provider that Inspect AI does not have."""
    from inspect_ai._util.registry import registry_find, registry_unqualified_name

    provider, slash, _ = model.partition("/")

    def is_named(info: Any) -> bool:
        return info.type == "modelapi" and registry_unqualified_name(info) == provider

    # If none has the name, Inspect AI imports the packages that have further providers.
    if not slash or registry_find(is_named):
        return
    providers = set(
        map(registry_unqualified_name, registry_find(lambda info: info.type == "modelapi"))
    )
    if providers:
        what = f"the model {model} cannot be used: Inspect AI has no provider"
        raise unknown_name(what, provider, sorted(providers))


def unknown_argument(error: TypeError) -> InputError | None:
    """Return the error for an argument that a provider's client does not have, or None."""
    import openai

    unexpected = UNEXPECTED.search(str(error))
    if unexpected is None:
        return None
    client = getattr(openai, unexpected[1], None)
    if client is None:
        return None
    _, *allowed = inspect.signature(client.__init__).parameters
    return unknown_name("a wrong argument with -M:", unexpected[2], allowed)
