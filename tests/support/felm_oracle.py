"""FELM's official script, ``eval/eval.py`` of the mirror, as an oracle for its messages and its scores.

The script imports clients and models that are replaced by stand-ins; its code runs unchanged.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from qabench.loading_scripts.felm.parse import to_source

Call = dict[str, Any]
"""A call to a model: "messages" or "prompt", "temperature" and "max_tokens"."""
STARTS_WITH = "<s> "  # how Vicuna's tokenizer decodes what it encoded


class Script:
    """The script with a model that replies with ``reply(call)``; all calls are in ``calls``."""

    def __init__(self, mirror: Path, reply: Callable[[Call], str]) -> None:
        self.folder = mirror / "hkust-nlp/felm/eval"
        self.reply = reply
        self.calls: list[Call] = []
        # The script leaves its files open.
        self.names: dict[str, Any] = {"__name__": "felm_eval", "open": _closed_again}
        path = self.folder / "eval.py"
        with _stubs(self), warnings.catch_warnings(action="ignore"):
            exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), self.names)
        self.names |= {"tokenizer": _Tokenizer(), "model_": SimpleNamespace(generate=self._generate)}

    def run(self, rows: Sequence[Mapping[str, Any]], model: str, method: str, num_cons: int = 3) -> dict[str, Any]:
        """The result of ``run`` for rows of the dataset: {index: {"domain", "res", ...}}."""
        lines = [json.dumps(to_source(row)) for row in rows]
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(io.StringIO()):
            result: dict[str, Any] = self.names["run"](lines, model, method.replace("-", "_"), num_cons)
        return result

    def scores(self, domain: str, result: Mapping[str, Any]) -> dict[str, Any]:
        """f1, precision, recall, balanced_accuracy and counts of a domain, or of "ALL"."""
        found = self.names["compute_accuracy"](domain, result)
        tn, tp, fn, fp = found["TN,TP,FN,FP"]
        names = {"f1": "F1", "precision": "P", "recall": "R", "balanced_accuracy": "balanced"}
        return {ours: found[name] for ours, name in names.items()} | {"tp": tp, "tn": tn, "fp": fp, "fn": fn}

    def chat(self, **call: Any) -> dict[str, Any]:
        """Replaces ``openai.ChatCompletion.create``."""
        self.calls.append(call)
        return {"choices": [{"message": {"content": self.reply(call)}}]}

    def _generate(self, prompt: _Ids, max_new_tokens: int) -> list[str]:
        call = {"prompt": prompt.text, "max_tokens": max_new_tokens}
        self.calls.append(call)
        return [f"{STARTS_WITH}{prompt.text}{self.reply(call)}"]


def _closed_again(path: str) -> io.StringIO:
    return io.StringIO(Path(path).read_text(encoding="utf-8"))


class _Ids:
    def __init__(self, text: str) -> None:
        self.text = text

    def to(self, device: str) -> _Ids:
        return self


class _Tokenizer:
    """The text is its own list of tokens."""

    def __call__(self, text: str, return_tensors: str) -> Any:
        return SimpleNamespace(input_ids=_Ids(text))

    def decode(self, text: str) -> str:
        return text


@contextlib.contextmanager
def _stubs(script: Script) -> Iterator[None]:
    import re

    def module(name: str, **content: Any) -> ModuleType:
        made = ModuleType(name)
        vars(made).update(content)
        return made

    def nothing(*args: Any, **options: Any) -> Any:
        return lambda function: function

    stubs = {
        "openai": module("openai", ChatCompletion=SimpleNamespace(create=script.chat)),
        "pandas": module("pandas"),
        "regex": re,
        "tenacity": module("tenacity", retry=nothing, stop_after_attempt=nothing, wait_random_exponential=nothing),
        "transformers": module("transformers", AutoTokenizer=None, AutoModelForCausalLM=None),
    }
    before = {name: sys.modules.get(name) for name in stubs}
    sys.modules.update(stubs)
    try:
        yield
    finally:
        for name, found in before.items():
            if found is None:
                del sys.modules[name]
            else:
                sys.modules[name] = found
