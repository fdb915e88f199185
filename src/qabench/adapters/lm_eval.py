"""Tasks of lm-evaluation-harness, with this package's data and scores.

    lm_eval run --include_path "$(qabench path lm-eval)" --tasks qabench ...

Each benchmark has its tasks in ``qabench/benchmarks/NAME/lm_eval``. The tag ``qabench`` selects one
task per benchmark and method, ``qabench_sample`` the tasks on the shipped samples. The scores equal
the output of ``qabench score`` on the same replies to the last digit, except in runs on several
processes, where the harness adds up in another order. Everything that scores depend on is in the
results' ``configs``, under ``metadata``: the task's version and the signatures.

Only the harness imports this module, which imports the harness.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

from lm_eval.api.metrics import mean
from lm_eval.api.task import ConfigurableTask

from qabench.adapters.harness import COUNTS, HarnessTask, total
from qabench.data.rows import Json, Row
from qabench.evaluation.signature import (
    asked_field,
    asked_part,
    deviations,
    signature_name,
    with_fields,
)
from qabench.loading import load_dataset

# stop strings that no answer contains. Whether it samples follows from temperature
NOT_SIGNED = ("until", "do_sample")
SPLITS = ("training_split", "validation_split", "test_split", "fewshot_split")
NAMES = {"max_gen_toks": "max_tokens"}  # the harness's names -> the names in signatures


class QabenchTask(ConfigurableTask):
    """A YAML task on a benchmark of this package: ``dataset_path`` is the benchmark, ``dataset_name`` its config.

    Its YAML file needs ``class``, the dataset, the splits, ``output_type``, ``generation_kwargs``
    and ``metric_list: []``: the scores are the benchmark's main ones, and the numbers of replies
    that are ``unparsed`` (empty, or have a problem) and ``unanswered`` (missing). In its metadata,
    NAME_ARGUMENT is an argument of the benchmark's Inspect task: ``felm_method: raw`` is the
    ``method`` of the task ``felm``. The metadata of the results also contains ``signatures`` and
    ``deviations``, the sentences that distinguish the scores from official ones.
    """

    def __init__(self, config: Json) -> None:
        # The harness passes the key that names this class, but does not accept it.
        super().__init__(config={name: value for name, value in config.items() if name != "class"})
        self._ids = [question.id for question in self.harness.questions.rows]
        self._asked = self._ids
        self._sign()

    @cached_property
    def harness(self) -> HarnessTask:
        """Return the prompts and scores of the task."""
        config = self.config
        return HarnessTask(config.dataset_path, config.dataset_name, config.metadata)

    def set_config(self, key: str, value: Any, update: bool = False) -> None:
        """Set an option, such as one of --gen_kwargs, which the signatures then contain."""
        super().set_config(key, value, update)
        self._sign()

    def build_all_requests(self, **options: Any) -> None:
        """Build the requests for the questions that ``--limit`` or ``--samples`` select, and sign which they are."""
        selected = options.get("samples")
        self._asked = (
            self._ids[: options.get("limit")]
            if selected is None
            else [self._ids[i] for i in selected]
        )
        self._sign()
        super().build_all_requests(**options)

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Load the rows from verified files.

        The harness would load them from the Hub.
        """
        self.dataset = load_dataset(self.config.dataset_path, self.config.dataset_name)
        for name in SPLITS:
            if split := getattr(self.config, name):
                self.harness.checked_split(split)

    def doc_to_text(self, doc: Row, doc_to_text: Any = None) -> str:
        """Return the user message."""
        return dict(self.harness.asking.messages(doc))["user"]

    def doc_to_target(self, doc: Row, doc_to_target: Any = None) -> str:
        """Return the reference, for the log."""
        reference: str = self.harness.benchmark.question(doc).reference
        return reference

    def fewshot_context(self, doc: Row, *args: Any, **options: Any) -> Any:
        """Return the whole context with the system message: as a message in a chat, else before the prompt.

        The YAML file of a benchmark with a system message says ``description: system_message``.
        """
        # Without a chat template, the harness joins both without a separator.
        end = "" if options.get("apply_chat_template") else "\n\n"
        system = dict(self.harness.asking.messages(doc)).get("system", "") + end
        return super().fewshot_context({**doc, "system_message": system}, *args, **options)

    def process_results(self, doc: Row, results: Sequence[str | None]) -> Json:
        """Return a reply's values for each score, and whether it is unparsed or unanswered."""
        (reply,) = results
        return self.harness.values(doc, reply)

    def aggregation(self) -> dict[str, Callable[..., Any]]:
        """Return the functions that compute the scores from the values of all replies."""
        functions = {
            spec.name: partial(total, spec) if spec.function else mean
            for spec in self.harness.score_specs
        }
        return functions | dict.fromkeys(COUNTS, sum)

    def higher_is_better(self) -> dict[str, bool]:
        """Return the direction of each score."""
        directions = {spec.name: spec.higher_is_better for spec in self.harness.score_specs}
        return directions | dict.fromkeys(COUNTS, False)

    def _sign(self) -> None:
        options = self.config.generation_kwargs or {}
        generation = {
            NAMES.get(name, name): value
            for name, value in options.items()
            if name not in NOT_SIGNED
        }
        about = {
            "benchmark": self.harness.benchmark.name,
            **self.harness.questions.fields,
            **self.harness.asking.fields(),
            **generation,
        }
        signatures = self.harness.scorer.signatures([], about)
        declarations = self.harness.benchmark.declarations()
        questions = asked_field(self._asked)
        groups = self.harness.benchmark.default_groups
        lines = {group: with_fields(signatures[group], asked=questions) for group in groups}
        part = asked_part(len(self._asked), len(self._ids))
        sentences = {
            group: deviations(line, declarations[signature_name(line)]) + part
            for group, line in lines.items()
        }
        self.config.metadata |= {"signatures": lines, "deviations": sentences}
