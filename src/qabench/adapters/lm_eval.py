"""Tasks for lm-evaluation-harness, with this package's data and scores.

    lm_eval run --include_path "$(qabench path lm-eval)" --tasks qabench ...

Each benchmark has its tasks in ``qabench/benchmarks/NAME/lm_eval``. The tag ``qabench`` selects one
task per benchmark and method, ``qabench_sample`` the tasks on the shipped samples. The scores equal
the output of ``qabench score`` on the same replies to the last digit, except in runs on several
processes, where the harness adds them up in another order. Everything that scores depend on is in
the results' ``configs``, under ``metadata``: the task's version and the signatures.

Only the harness imports this module, which imports the harness.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from math import isfinite, nan
from typing import Any

from lm_eval.api.metrics import mean
from lm_eval.api.task import ConfigurableTask

from qabench.benchmarks import Benchmark, benchmark
from qabench.data.rows import Json, Row
from qabench.errors import unknown_name
from qabench.evaluation import EMPTY, MISSING, Record
from qabench.evaluation.harness_fields import only_special_tokens
from qabench.evaluation.records import values_of
from qabench.evaluation.score_spec import CUTOFF, ScoreSpec
from qabench.evaluation.scoring import Asking, Item, Questions, Scorer, outcomes_of
from qabench.evaluation.signature import (
    asked_field,
    asked_part,
    deviations,
    signature_name,
    with_fields,
)
from qabench.loading_scripts.load import load_dataset

# Whether replies are sampled follows from the temperature, which is signed.
NOT_SIGNED = ("do_sample",)
SPLITS = ("training_split", "validation_split", "test_split", "fewshot_split")
COUNTS = ("unparsed", "unanswered")
# Generation option of the harness -> its name in signatures.
SIGNATURE_NAMES = {"max_gen_toks": "max_tokens"}


class QabenchTask(ConfigurableTask):
    """A YAML task: ``dataset_path`` is a benchmark, and ``dataset_name`` its config.

    Its YAML file needs ``class``, the dataset, the splits, ``output_type``, ``generation_kwargs``
    and ``metric_list: []``. The results have the benchmark's main scores, and the numbers of
    replies that are ``unparsed`` (empty, or with a problem) and ``unanswered`` (missing). In the
    file's metadata, NAME_ARGUMENT sets an argument of the benchmark's Inspect task:
    ``felm_method: raw`` sets the ``method`` of the task ``felm``. The metadata of the results also contains
    ``signatures`` and ``deviations``, sentences about what distinguishes the scores from official
    ones.
    """

    def __init__(self, config: Json) -> None:
        # The harness passes the key that names this class, but does not accept it.
        accepted = dict(config)
        accepted.pop("class", None)
        super().__init__(config=accepted)
        self._ids = [question.id for question in self.questions.rows]
        # The ids of the questions that --limit or --samples select. By default, all are asked.
        self._asked = self._ids
        self._sign()

    @cached_property
    def benchmark(self) -> Benchmark:
        """Return the benchmark that ``dataset_path`` names."""
        return benchmark(self.config.dataset_path)

    @cached_property
    def questions(self) -> Questions:
        """Return the questions of the config that ``dataset_name`` names."""
        return self.benchmark.load(self.config.dataset_name)

    @cached_property
    def asking(self) -> Asking:
        """Return how the model is asked."""
        prefix = f"{self.benchmark.name}_"
        arguments = {}
        for name, value in self.config.metadata.items():
            if name.startswith(prefix):
                arguments[name.removeprefix(prefix)] = value
        return self.benchmark.asking(**arguments)

    @cached_property
    def scorer(self) -> Scorer:
        """Return the scorer of the benchmark's default scores."""
        return self.benchmark.scorer(self.benchmark.default_groups, **self.asking.scoring)

    @cached_property
    def score_specs(self) -> list[ScoreSpec]:
        """Return the scores in the results: the main ones of the benchmark's default groups."""
        specs = []
        for spec in self.benchmark.scores:
            is_default = spec.main and spec.group in self.benchmark.default_groups
            if is_default and not spec.name.endswith(CUTOFF):
                specs.append(spec)
        return specs

    def set_config(self, key: str, value: Any, update: bool = False) -> None:
        """Set an option, such as one of --gen_kwargs, and update the signatures."""
        super().set_config(key, value, update)
        self._sign()

    def build_all_requests(self, **options: Any) -> None:
        """Build the requests for the questions that --limit or --samples select, and sign them."""
        selected = options.get("samples")
        if selected is None:
            self._asked = self._ids[: options.get("limit")]
        else:
            self._asked = [self._ids[position] for position in selected]
        self._sign()
        super().build_all_requests(**options)

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Load the rows from verified files. The harness would load them from the Hub."""
        self.dataset = load_dataset(self.config.dataset_path, self.config.dataset_name)
        for name in SPLITS:
            split = getattr(self.config, name)
            if split and split not in self.dataset:
                where = f"{self.config.dataset_path} {self.config.dataset_name} has no split"
                raise unknown_name(where, split, self.dataset)

    def doc_to_text(self, doc: Row, doc_to_text: Any = None) -> str:
        """Return the user message."""
        return dict(self.asking.messages(doc))["user"]

    def doc_to_target(self, doc: Row, doc_to_target: Any = None) -> str:
        """Return the reference, for the log."""
        reference: str = self.benchmark.question(doc).reference
        return reference

    def fewshot_context(self, doc: Row, *args: Any, **options: Any) -> Any:
        """Return the whole context with the system message.

        In a chat, the system message is separate. Otherwise, it comes before the prompt. The YAML
        file of a benchmark with a system message has ``description: system_message``.
        """
        # Without a chat template, the harness joins both without a separator.
        end = "" if options.get("apply_chat_template") else "\n\n"
        system = dict(self.asking.messages(doc)).get("system", "") + end
        return super().fewshot_context({**doc, "system_message": system}, *args, **options)

    def process_results(self, doc: Row, results: Sequence[str | None]) -> Json:
        """Return a reply's values for each score, and whether it is unparsed or unanswered.

        For a score that is not a mean, the value is the list of numbers that it needs. See
        ``total``.
        """
        (reply,) = results
        fields = None
        if reply is not None:
            fields = {"answer": reply}
        id = self.benchmark.question(doc).id
        (outcome,) = outcomes_of(self.scorer, [Item(doc, fields)], self.benchmark.name, [id])
        unanswered = reply is None or outcome.status == MISSING
        unparsed = not unanswered and (bool(outcome.problem) or outcome.status == EMPTY)
        values: Json = {"unparsed": int(unparsed), "unanswered": int(unanswered)}
        for spec in self.score_specs:
            # NaN marks an undefined value. ``total`` leaves such a reply out, but the harness's mean
            # does not: it becomes NaN.
            columns = [outcome.scores.get(name, nan) for name in spec.needs]
            values[spec.name] = columns if spec.function else columns[0]
        return values

    def aggregation(self) -> dict[str, Callable[..., Any]]:
        """Return the functions that compute the scores from the values of all replies."""
        functions: dict[str, Callable[..., Any]] = {}
        for spec in self.score_specs:
            functions[spec.name] = partial(total, spec) if spec.function else mean
        return functions | dict.fromkeys(COUNTS, sum)

    def higher_is_better(self) -> dict[str, bool]:
        """Return the direction of each score."""
        directions = {spec.name: spec.higher_is_better for spec in self.score_specs}
        return directions | dict.fromkeys(COUNTS, False)

    def _sign(self) -> None:
        """Recompute the metadata's signatures and deviations when options or questions change."""
        generation = {}
        for name, value in (self.config.generation_kwargs or {}).items():
            # Replies do not contain special tokens, so these strings never end a reply.
            is_without_effect = name == "until" and only_special_tokens(value)
            if name not in NOT_SIGNED and not is_without_effect:
                generation[SIGNATURE_NAMES.get(name, name)] = value
        about = {
            "benchmark": self.benchmark.name,
            **self.questions.fields,
            **self.asking.fields(),
            **generation,
        }
        signatures = self.scorer.signatures([], about)
        declarations = self.benchmark.declarations()
        asked = asked_field(self._asked)
        not_all_asked = asked_part(len(self._asked), len(self._ids))
        lines = {}
        sentences = {}
        for group in self.benchmark.default_groups:
            line = with_fields(signatures[group], asked=asked)
            lines[group] = line
            sentences[group] = deviations(line, declarations[signature_name(line)]) + not_all_asked
        self.config.metadata |= {"signatures": lines, "deviations": sentences}


def total(spec: ScoreSpec, rows: Sequence[Sequence[float]]) -> float | None:
    """Compute a score that is not a mean, from the values of all replies. None if undefined."""
    records = []
    for number, row in enumerate(rows):
        if all(map(isfinite, row)):
            columns = dict(zip(spec.needs, row, strict=True))
            # Only the id and the numbers matter for the score.
            record = Record(
                id=str(number),
                epoch=1,
                question="",
                reference="",
                messages=(),
                answer=None,
                status="",
                scores=columns,
            )
            records.append(record)
    return values_of([spec], records).get(spec.name)
