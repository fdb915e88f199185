"""The base of all metric modules: the interface of ``evaluate``, and checks of the input."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from inspect import cleandoc
from inspect import signature as signature_of
from pathlib import Path
from typing import Any, ClassVar

from qabench.adapters.declared import Declarations, result_of
from qabench.adapters.encoding import decoded, encode, encode_item, encoded_features
from qabench.data.answers import NOT_STRING, UNANSWERED, is_list_of, is_text
from qabench.data.containers import is_json_text, items_of, read_column
from qabench.data.rows import Json
from qabench.errors import InputError, QabenchError, some, unknown_name
from qabench.loading_scripts import dataset_table

SHARED_ARGUMENTS = """\
    references_format: how references that are strings are read: as "json" (JSON text), as "python" (plain
        text), or "auto" (plain text, and an error if they could be both). A column of a dataset that says
        that it is JSON text is always read as such.
    flat: return only numbers, by names such as "rouge1" and "rouge1_precision", for a Trainer or TensorBoard.
"""
# Parts of results that are not fractions.
UNBOUNDED = ("bleurt", "judge", "usage")
# Marks an argument that was not passed. None is a value, for an unanswered question.
NOT_GIVEN: Any = object()
ROW_KEYS = ({"id", "answer"}, {"id", "prediction"}, {"id", "question"}, {"question", "answer"})
# Flat results name this score after its dict alone: {"rouge1": {"fscore": ...}} becomes "rouge1".
HEADLINE = "fscore"
PROVENANCE = """\
    signature: everything the scores depend on, in one line.
    deviations: what distinguishes the scores from the official ones, in sentences; empty if they are official.
"""


class MetricModule(Declarations):
    """A mixin for metrics, placed before ``evaluate.Metric``.

    It is not a subclass of ``evaluate.Metric``, because ``evaluate.load`` uses the first such class
    that it finds in a module. A metric declares what it computes (see ``Declarations``), and the
    benchmark's scorer computes it. Its docstring says what is measured and, from "Args:" on,
    documents ``compute``, except for what all metrics share.

    Attributes:
        TYPES: what a prediction and a reference are, for ``features``: a type, a list with the type
            of its items, or a dict of types. A list of these if a prediction can have several
            types.
        DESCRIPTION, INPUTS: the two parts of the docstring.
        URLS: the paper and the official implementation.
        CITATION: what to cite in addition to the benchmark, in BibTeX.
        WITHOUT_REFERENCES: the declarations to use if no references are passed. None if they are
            required.
    """

    TYPES: ClassVar[Any] = {"predictions": "string", "references": "string"}
    DESCRIPTION: ClassVar[str]
    INPUTS: ClassVar[str]
    URLS: ClassVar[tuple[str, ...]] = ()
    CITATION: ClassVar[str] = ""
    WITHOUT_REFERENCES: ClassVar[type[Declarations] | None] = None

    def score(
        self,
        predictions: list[Any],
        references: list[Any],
        per_question: bool = False,
        **options: Any,
    ) -> Json:
        """Return the result for decoded predictions (``UNANSWERED`` for None) and references."""
        declared: type[Declarations] = type(self)
        if self.WITHOUT_REFERENCES and not any(references):
            declared = self.WITHOUT_REFERENCES
        return result_of(declared, self.module(), predictions, references, per_question, options)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.DESCRIPTION, _, inputs = cleandoc(cls.__doc__ or "").partition("Args:\n")
        args, _, returns = inputs.partition("Returns:\n")
        returns = re.sub("^(?=Raises:|Examples:)", PROVENANCE, returns, count=1, flags=re.MULTILINE)
        cls.INPUTS = f"Args:\n{args}{SHARED_ARGUMENTS}Returns:\n{returns}"

    def _info(self) -> Any:
        import evaluate

        return evaluate.MetricInfo(
            description=self.DESCRIPTION,
            citation=dataset_table(self.BENCHMARK).citation + self.CITATION,
            inputs_description=self.INPUTS,
            features=_declared(self.TYPES),
            reference_urls=list(self.URLS),
        )

    def _compute(
        self,
        predictions: list[str],
        references: list[str],
        references_format: str = "auto",
        flat: bool = False,
        **options: Any,
    ) -> Json:
        answers, targets = decoded(predictions, references, references_format, strings=self.STRINGS)
        if self.ANSWERS:
            for i, target in enumerate(targets):
                _check_answer(target, f"references[{i}]")
        elif self.ROWS:
            answers = _in_order(answers, targets)
        result = self.score(answers, targets, **options)
        if self.BOUNDED:
            _check_range(result, "")
        missing = sum(map(self._is_missing, answers))
        deviations = list(result["deviations"])
        if missing:
            deviations.append(f"{missing} of {len(answers)} questions have no prediction")
        not_text = []
        if self.ANSWERS:
            for i, answer in enumerate(answers):
                if not is_text(answer):
                    not_text.append(f"predictions[{i}]")
        if not_text:
            deviations.append(f"{NOT_STRING}: {len(not_text)} ({some(not_text)})")
        result["deviations"] = deviations
        return dict(_flat(result)) if flat else result

    def _is_missing(self, prediction: Any) -> bool:
        """Return whether a prediction is missing, or is a list of missing replies."""
        if self.SAMPLES and isinstance(prediction, list):
            return all(reply is None for reply in prediction)
        return prediction is UNANSWERED

    # evaluate writes its columns with the features of these two methods. ``features`` describes
    # what users pass.
    def _infer_feature_from_batch(self, batch: Any) -> Any:
        return encoded_features()

    def _infer_feature_from_example(self, example: Any) -> Any:
        return encoded_features()

    @classmethod
    def options(cls) -> list[str]:
        """Return the options of ``compute``."""
        return [*cls.COLUMNS, *cls.scorer_options(), "per_question", "references_format", "flat"]

    @classmethod
    def module(cls) -> str:
        """Return the name of the metric, even if ``evaluate`` has loaded a copy of its module."""
        return cls.__module__.rpartition(".")[2]

    def add_batch(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> None:
        """Add a list of predictions and the list of their references.

        Raises:
            InputError: one list is missing, they differ in length, or an item cannot be an answer.
        """
        columns = {"predictions": predictions, "references": references}
        missing = [name for name, column in columns.items() if column is None]
        if missing:
            raise InputError(
                f"{' and '.join(missing)} missing: predictions and references are required"
            )
        encoded = {}
        for name, column in columns.items():
            # Only the column says whether its strings are JSON text. Taking the items may use up a
            # generator, so this comes first.
            is_json = is_json_text(column)
            items = self._items(name, column)
            if is_json:
                items = read_column(items, name)
            encoded[name] = encode(name, items, from_json_text=is_json)
        n_predictions, n_references = len(encoded["predictions"]), len(encoded["references"])
        if n_predictions != n_references:
            raise InputError(
                f"{n_predictions} predictions for {n_references} references; expected one for each"
            )
        super().add_batch(**encoded, **kwargs)  # type: ignore[misc]

    def _items(self, name: str, column: Any) -> list[Any]:
        """Return the items of predictions or references as Python values.

        Raises:
            InputError: a container that is not a column, a missing reference, or a whole row
                instead of an answer.
        """
        column_name = self.REFERENCE if self.ROWS or name == "references" else "answer"
        items = items_of(column, name, column_name, rows=self.ROWS)
        if name == "references" and not self.WITHOUT_REFERENCES:
            for i, item in enumerate(items):
                if item is None:
                    raise InputError(
                        f"references[{i}] is missing; every question needs one: give it, or leave the question out"
                    )
        if self.ANSWERS:
            for i, item in enumerate(items):
                if type(item) is dict:
                    _check_is_no_row(item, name, i, column_name)
        return items

    def add(
        self,
        *,
        prediction: Any = NOT_GIVEN,
        reference: Any = NOT_GIVEN,
        predictions: Any = NOT_GIVEN,
        references: Any = NOT_GIVEN,
        **kwargs: Any,
    ) -> None:
        """Add one prediction (None: unanswered) and its reference.

        ``evaluate`` itself passes them as ``predictions`` and ``references``. ``combine`` passes
        both pairs of names, so the plural names take precedence.
        """
        answer = prediction if predictions is NOT_GIVEN else predictions
        target = reference if references is NOT_GIVEN else references
        if answer is NOT_GIVEN or target is NOT_GIVEN:
            absent = "prediction" if answer is NOT_GIVEN else "reference"
            raise InputError(
                f"{absent} missing: a prediction (None: unanswered) and its reference are required"
            )
        # A single item passes the same checks as a whole column.
        (answer,) = self._items("predictions", [answer])
        (target,) = self._items("references", [target])
        encoded = {
            "prediction": encode_item(answer, "prediction"),
            "reference": encode_item(target, "reference"),
        }
        super().add(**encoded, **kwargs)  # type: ignore[misc]

    def compute(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> Any:
        """Compute the scores of these lists, or of the items added before."""
        # Rows of the user's own data have everything that is scored, so they need no references.
        if self.WITHOUT_REFERENCES and references is None and is_list_of(predictions, dict):
            references = [None] * len(predictions)
        if predictions is None and references is None and len(self) == 0:  # type: ignore[arg-type]
            raise InputError(
                "nothing to score: pass predictions and references, or add some before compute()"
            )
        options = self.options()
        unknown = sorted(kwargs.keys() - options)
        if unknown:
            # ``evaluate.combine`` passes each option to all of its metrics, without saying who
            # calls. So the caller's frame is searched for the combination.
            caller = sys._getframe(1).f_locals.get("self")
            of_others = _options_of_combined(caller, self)
            for name in unknown:
                if name in of_others:
                    del kwargs[name]
            unknown = sorted(kwargs.keys() - options)
        if unknown:
            raise unknown_name(f"the metric {self.module()} has no option", unknown[0], options)
        try:
            return super().compute(  # type: ignore[misc]
                predictions=predictions, references=references, **kwargs
            )
        except BaseException:
            self._discard_finished()
            raise

    def _discard_finished(self) -> None:
        """Remove the files of items that cannot be scored, and release their locks.

        ``evaluate`` does both only after a computation that succeeds. Without this, the next
        computation waits a second for the lock, and the file stays in the cache.
        """
        cached = vars(self)
        finished = cached.get("data") is not None
        if not finished:
            return
        cached.update(data=None, buf_writer=None)
        if cached.get("keep_in_memory"):
            return
        # ``evaluate`` has no public names for its files and locks. These are its private
        # attributes.
        for path, lock in zip(cached["file_paths"], cached["filelocks"], strict=True):
            # On Windows, a file that an object in the traceback has mapped cannot be removed.
            with suppress(OSError):
                Path(path).unlink(missing_ok=True)
            lock.release()


def _declared(types: Json | list[Json]) -> Any:
    """Return what ``TYPES`` declares as features, or as a list of alternative features."""
    import datasets

    from qabench.loading_scripts.builder import features

    if isinstance(types, list):
        return [datasets.Features(features(alternative)) for alternative in types]
    return datasets.Features(features(types))


def _check_is_no_row(item: Mapping[str, Any], name: str, i: int, column: str) -> None:
    """Raise InputError for a whole row in place of an answer: its other columns would be scored."""
    if not any(keys <= item.keys() for keys in ROW_KEYS):
        return
    key = "prediction" if column not in item and "prediction" in item else column
    raise InputError(
        f"{name}[{i}] is a row with the keys {', '.join(map(repr, item))}; pass only its {key!r}: "
        f"{name}=[row[{key!r}] for row in rows]"
    )


def _check_answer(answer: Any, where: str) -> None:
    """Raise InputError if a reference, or a part of it, is missing."""
    items: Iterable[Any] = ()
    if answer is None or (isinstance(answer, float) and answer != answer):
        raise InputError(
            f"{where} is or contains a missing value (None or NaN); every question needs a whole reference: leave the "
            "question out, or complete it"
        )
    if isinstance(answer, dict):
        items = answer.values()
    elif isinstance(answer, list):
        items = answer
    for item in items:
        _check_answer(item, where)


def _in_order(predictions: list[Any], references: list[Any]) -> list[Any]:
    """Return the predictions in the order of the references, which are rows.

    If all predictions are rows, too, and all rows on both sides have an id, they are matched by id.
    Otherwise, they are matched by position.

    Raises:
        InputError: an id is repeated, or is on one side only.
    """
    # Some datasets name their ids ``example_id``.
    for key in ("id", "example_id"):
        ids, reference_ids = _ids(predictions, key), _ids(references, key)
        if ids is None or reference_ids is None or ids == reference_ids:
            continue
        # A prediction must not be scored against the reference of another question.
        counts = Counter(ids)
        counts_of_references = Counter(reference_ids)
        for id in [*ids, *reference_ids]:
            problem = None
            if max(counts[id], counts_of_references[id]) > 1:
                problem = "repeated"
            elif counts[id] != counts_of_references[id]:
                problem = "on one side only"
            if problem:
                raise InputError(
                    f"predictions and references are rows with the field {key!r}, but not of the same questions: "
                    f"{id} is {problem}; pass one prediction for each reference"
                )
        by_id = dict(zip(ids, predictions, strict=True))
        return [by_id[id] for id in reference_ids]
    return predictions


def _ids(rows: list[Any], key: str) -> list[str] | None:
    """Return the ids of rows, or None if one has none."""
    ids = []
    for row in rows:
        if not isinstance(row, Mapping) or row.get(key) is None:
            return None
        ids.append(str(row[key]))
    return ids


def _check_range(value: Any, where: str) -> None:
    """Raise QabenchError for a score that no input can produce.

    Such a score is not a number, or is a fraction outside [0, 1] by more than a rounding error.
    """
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in UNBOUNDED:
                path = f"{where}.{name}" if where else str(name)
                _check_range(inner, path)
    elif isinstance(value, list | tuple):
        for position, inner in enumerate(value):
            _check_range(inner, f"{where}[{position}]")
    # NaN is in no range either, so it is rejected here as well.
    elif isinstance(value, float) and not -1e-9 <= value <= 1 + 1e-9:
        raise QabenchError(
            f"{where} is {value!r}, outside its range from 0 to 1; either the references do not have the form of the "
            "dataset's column, or this is a bug in qabench"
        )


def _flat(result: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, float]]:
    """Yield the numbers of a result with names such as "rouge1_precision".

    ROUGE's F-measure is also yielded as "rouge1" alone, because a Trainer selects the best
    checkpoint by the name of one number.
    """
    for name, value in result.items():
        path = f"{prefix}{name}"
        if isinstance(value, dict):
            if HEADLINE in value:
                yield path, value[HEADLINE]
            yield from _flat(value, f"{path}_")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield path, value


def _options_of_combined(combination: Any, metric: Any) -> Sequence[str]:
    """Return the options of all metrics in an ``evaluate.combine`` that has ``metric``, else []."""
    modules = getattr(combination, "evaluation_modules", ())
    options: list[str] = []
    if not any(module is metric for module in modules):
        return options
    for module in modules:
        if isinstance(module, MetricModule):
            options += module.options()
        else:
            options += signature_of(module._compute).parameters
    return options
