"""Tasks of lighteval: the same as for lm-evaluation-harness, from its YAML files.

    lighteval endpoint litellm MODEL TASK --custom-tasks "$(qabench path lighteval)"

Only lighteval imports this module, which imports lighteval. lighteval loads the dataset by its Hub
name. ``qabench register`` makes this work without the Hub. The prompts and the scores use the
verified rows of this package, found by the question's id. A run is not signed: ``qabench score``
reads its details, with the deviations.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import CorpusLevelMetricGrouping
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc, SamplingMethod

from qabench.adapters.harness import COUNTS, HarnessTask, total
from qabench.benchmarks import benchmark, benchmark_names
from qabench.data.rows import Json, Row
from qabench.evaluation.score_spec import ScoreSpec
from qabench.evaluation.scoring import Question


class _Loader(yaml.SafeLoader):
    """Reads the harness's YAML files, whose functions only the harness needs."""


_Loader.add_constructor("!function", lambda loader, node: node.value)


class LightevalTask(HarnessTask):
    """The questions of a config, by their ids."""

    @cached_property
    def by_id(self) -> dict[str, Question]:
        """Return the questions by id."""
        return {question.id: question for question in self.questions.rows}

    def doc(self, row: Row, task: str) -> Doc:
        """Return the prompt of a row of the dataset that lighteval loaded."""
        question = self.by_id[str(row["id"] if "id" in row else row["index"])]
        messages = dict(self.asking.messages(question.row))
        system = messages.get("system")
        return Doc(
            query=messages["user"],
            choices=[question.reference],
            gold_index=0,
            # lighteval puts it before the prompt, in the same message.
            instruction=f"{system}\n\n" if system else None,
            original_query=question.text,
            specific={"id": question.id},
        )


class Scores(SampleLevelComputation):
    """The values of one reply."""

    def __init__(self, task: LightevalTask) -> None:
        self.task = task

    def compute(self, doc: Any, model_response: Any, **kwargs: Any) -> Json:
        """Return the values for each score, and whether the reply is unparsed or unanswered."""
        reply = model_response.final_text[0]
        return self.task.values(self.task.by_id[doc.specific["id"]].row, reply)

    def __str__(self) -> str:
        return f"scores of {self.task.benchmark.name}"


def _total(spec: ScoreSpec, values: Sequence[Any]) -> dict[str, float]:
    # lighteval adds no bootstrapped error to a result that is a dictionary, and cannot sum None.
    value = total(spec, values) if spec.function else fmean(values)
    return {spec.name: float("nan") if value is None else value}


def _count(name: str, values: Sequence[float]) -> dict[str, float]:
    return {name: sum(values)}


def _config(content: Mapping[str, Any]) -> LightevalTaskConfig:
    """Return the task of a YAML file."""
    task = LightevalTask(
        content["dataset_path"], content["dataset_name"], content.get("metadata", {})
    )
    totals = {spec.name: partial(_total, spec) for spec in task.score_specs}
    totals |= {name: partial(_count, name) for name in COUNTS}
    higher = {spec.name: spec.higher_is_better for spec in task.score_specs}
    generation = content["generation_kwargs"]
    split = task.checked_split(content.get("test_split") or content.get("validation_split"))
    return LightevalTaskConfig(
        name=content["task"],
        prompt_function=task.doc,
        hf_repo=content["dataset_path"],
        hf_subset=content["dataset_name"],
        hf_avail_splits=[split],
        evaluation_splits=[split],
        generation_size=generation["max_gen_toks"],
        stop_sequence=generation["until"],
        metrics=[
            CorpusLevelMetricGrouping(
                metric_name=list(totals),
                higher_is_better=higher | dict.fromkeys(COUNTS, False),
                category=SamplingMethod.GENERATIVE,
                sample_level_fn=Scores(task),
                corpus_level_fn=totals,
            )
        ],
    )


def _content(path: Path) -> Json:
    content: Json = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    if include := content.pop("include", None):
        return _content(path.parent / include) | content
    return content


def _folder(name: str) -> Path:
    module = sys.modules[type(benchmark(name)).__module__]
    return Path(str(module.__file__)).parent


TASKS_TABLE = [
    _config(content)
    for name in benchmark_names()
    for path in sorted(_folder(name).rglob("*.yaml"))
    if "task" in (content := _content(path))
]
