"""FELM's official script, ``eval/eval.py`` of the mirror, as an oracle for its messages and its
scores.

The script imports clients and models that are replaced by stand-ins; its code runs unchanged.
"""

import contextlib
import io
import json
import math
import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from expertqa_scripts import module

from qabench.loading_scripts.felm.parse import DOMAIN_WITHOUT_LISTS, FIELDS

Call = dict[str, Any]
"""A call to a model: "messages" or "prompt", "temperature" and "max_tokens"."""
STARTS_WITH = "<s> "  # how Vicuna's tokenizer decodes what it encoded


def to_source(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of the dataset as it is in the source: the inverse of ``parse_row``."""
    source = {key: row[key] for key in FIELDS}
    if row["response"] is None:
        source["response"] = math.nan
    if row["domain"] == DOMAIN_WITHOUT_LISTS:
        source |= {"type": "", "ref": ""}
    if not row["ref"]:
        source["ref_contents"] = ""
    return source


class Script:
    """The script with a model that replies with ``reply(call)``; all calls are in ``calls``."""

    def __init__(self, mirror: Path, reply: Callable[[Call], str]) -> None:
        self.folder = mirror / "hkust-nlp/felm/eval"
        self.reply = reply
        self.calls: list[Call] = []
        decorator = lambda *args, **options: lambda function: function  # noqa: E731
        names = ("retry", "stop_after_attempt", "wait_random_exponential")
        stubs: dict[str, Any] = {
            "openai": module("openai", ChatCompletion=SimpleNamespace(create=self.chat)),
            "pandas": module("pandas"),
            "regex": re,
            "tenacity": module("tenacity", **dict.fromkeys(names, decorator)),
            "transformers": module("transformers", AutoTokenizer=None, AutoModelForCausalLM=None),
        }
        # The script leaves its files open.
        opened = lambda path: io.StringIO(Path(path).read_text(encoding="utf-8"))  # noqa: E731
        self.names: dict[str, Any] = {"__name__": "felm_eval", "open": opened}
        path = self.folder / "eval.py"
        with mock.patch.dict(sys.modules, stubs), warnings.catch_warnings(action="ignore"):
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
        scores = self.names["compute_accuracy"](domain, result)
        tn, tp, fn, fp = scores["TN,TP,FN,FP"]
        names = {"f1": "F1", "precision": "P", "recall": "R", "balanced_accuracy": "balanced"}
        return {ours: scores[name] for ours, name in names.items()} | {"tp": tp, "tn": tn, "fp": fp, "fn": fn}

    def chat(self, **call: Any) -> dict[str, Any]:
        """Replaces ``openai.ChatCompletion.create``."""
        self.calls.append(call)
        return {"choices": [{"message": {"content": self.reply(call)}}]}

    def _generate(self, prompt: Any, max_new_tokens: int) -> list[str]:
        call = {"prompt": prompt.text, "max_tokens": max_new_tokens}
        self.calls.append(call)
        return [f"{STARTS_WITH}{prompt.text}{self.reply(call)}"]


class _Tokenizer:
    """The text is its own list of tokens."""

    def __call__(self, text: str, return_tensors: str) -> Any:
        return SimpleNamespace(input_ids=SimpleNamespace(text=text, to=lambda device: SimpleNamespace(text=text)))

    def decode(self, text: str) -> str:
        return text
