"""Runs of lm-evaluation-harness with a scripted model. Needs the extra ``lm-eval``."""

import json
from collections.abc import Callable, Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any

from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

FOLDER = Path(str(files("qabench.benchmarks")))


class Scripted(LM):
    """Replies with ``reply(document)``, and records the prompts."""

    tokenizer_name = "scripted"

    def __init__(self, reply: Callable[[dict[str, Any]], str | None]) -> None:
        super().__init__()
        self.reply = reply
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def generate_until(self, requests: Iterable[Any], disable_tqdm: bool = False) -> list[str | None]:
        requests = list(requests)
        self.asked += [request.args for request in requests]
        return [self.reply(request.doc) for request in requests]

    def loglikelihood(self, requests: Any, disable_tqdm: bool = False) -> Any:
        raise NotImplementedError

    def loglikelihood_rolling(self, requests: Any, disable_tqdm: bool = False) -> Any:
        raise NotImplementedError

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        return json.dumps(chat_history)


def manager(**metadata: Any) -> TaskManager:
    return TaskManager(include_path=str(FOLDER), include_defaults=False, metadata=metadata)


def run(model: LM | str, *tasks: str, metadata: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    return simple_evaluate(model=model, tasks=list(tasks), task_manager=manager(**(metadata or {})), **options)
