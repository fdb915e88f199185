"""Shared code of all metric modules: description and features, the encoding of columns, signature and deviations.

``evaluate`` writes predictions and references to Arrow before it scores them. An Arrow column has
one type and cannot store lone surrogates, and ``evaluate`` rejects None, but answers have six
types, and an unanswered question is None. Therefore both columns are encoded as JSON in ASCII, and
decoded with the same types and values.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from inspect import cleandoc
from inspect import signature as signature_of
from json.encoder import encode_basestring_ascii
from typing import Any, ClassVar

from qabench.answers import UNANSWERED, check_pairs, dumps, loads
from qabench.benchmarks import benchmark
from qabench.data.rows import Json
from qabench.errors import InputError, unknown_name
from qabench.evaluation import Record
from qabench.evaluation.records import values_of
from qabench.evaluation.scoring import Item, outcomes_of
from qabench.evaluation.signature import deviations, digest, signature
from qabench.loading_scripts import citation

FORMATS = ("auto", "json", "python")
REFERENCES_FORMAT = """\
    references_format: "json" or "python": the form of the references; "auto": JSON if all of them are JSON.
"""
PROVENANCE = """\
    signature: everything the scores depend on, in one line.
    deviations: what distinguishes the scores from the official ones, in sentences; empty if they are official.
"""


class MetricModule:
    """A mixin for metrics, placed before ``evaluate.Metric``.

    It is not a subclass of ``evaluate.Metric``, because ``evaluate.load`` uses the first one that
    it finds in a module. A metric sets the attributes. A metric whose result has a shape of its own
    defines ``score(predictions, references,
    ...)``, which gets the answers that were passed to ``compute`` (``UNANSWERED`` for a prediction that is None), and
    adds ``provenance`` to its result. Its docstring says what is measured and, from "Args:" on,
    documents ``compute``, except for what all metrics share.

    Attributes:
        BENCHMARK: the benchmark of the metric, such as "felm".
        GROUP: the group of its scores, if it does not define ``score``.
        REFERENCE: the column of a row that the references are, for the scorer of ``GROUP``.
        STRINGS: whether the references are strings, of which "42" is JSON only by chance.
        DESCRIPTION, INPUTS: the two parts of the docstring.
        URLS: the paper and the official implementation.
        CITATION: what to cite in addition to the benchmark, in BibTeX.
    """

    BENCHMARK: ClassVar[str]
    STRINGS: ClassVar[bool] = False
    DESCRIPTION: ClassVar[str]
    INPUTS: ClassVar[str]
    URLS: ClassVar[tuple[str, ...]] = ()
    CITATION: ClassVar[str] = ""
    GROUP: ClassVar[str] = ""
    REFERENCE: ClassVar[str] = "answer"

    def _scores(
        self, predictions: list[Any], references: list[Any], per_question: bool = False, **options: Any
    ) -> Json:
        """Return the benchmark's scores of the group, by the scorer that also scores files and runs."""
        check_pairs(references, predictions)
        scored = benchmark(self.BENCHMARK)
        if self.GROUP not in scored.groups:
            where = f"{type(self).__name__}.GROUP: {scored.title} has no group"
            raise unknown_name(where, self.GROUP, scored.groups)
        scorer = scored.scorer((self.GROUP,), **options)
        items = [
            Item({self.REFERENCE: reference}, None if answer is UNANSWERED else {"answer": answer})
            for answer, reference in zip(predictions, references, strict=True)
        ]
        outcomes = outcomes_of(scorer, items, self.BENCHMARK)
        records = [
            Record(str(number), 1, "", "", (), None, outcome.status, scores=outcome.scores)
            for number, outcome in enumerate(outcomes)
        ]
        specs = [spec for spec in scored.scores if spec.group == self.GROUP]
        result: Json = dict(values_of(specs, records))
        result |= self.provenance(references, **scorer.fields[self.GROUP])
        if per_question:
            result["per_question"] = [dict(outcome.scores) for outcome in outcomes]
        return result

    score: Callable[..., Json] = _scores

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.DESCRIPTION, _, inputs = cleandoc(cls.__doc__ or "").partition("Args:\n")
        args, _, returns = inputs.partition("Returns:\n")
        returns = re.sub("^(?=Raises:|Examples:)", PROVENANCE, returns, count=1, flags=re.MULTILINE)
        cls.INPUTS = f"Args:\n{args}{REFERENCES_FORMAT}Returns:\n{returns}"

    def _info(self) -> Any:
        import datasets
        import evaluate

        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=self.DESCRIPTION,
            citation=citation(self.BENCHMARK) + self.CITATION,
            inputs_description=self.INPUTS,
            features=_features()({"predictions": text, "references": text}),
            reference_urls=list(self.URLS),
        )

    def _compute(
        self,
        predictions: list[str],
        references: list[str],
        references_format: str = "auto",
        **options: Any,
    ) -> Json:
        return self.score(
            *decoded(predictions, references, references_format, strings=self.STRINGS), **options
        )

    def _options(self) -> list[str]:
        """Return the options of ``compute``."""
        names = [
            parameter.name
            for parameter in signature_of(self.score).parameters.values()
            if parameter.kind is not parameter.VAR_KEYWORD
        ]
        if self.GROUP:
            options = benchmark(self.BENCHMARK).options
            names += [each.name for each in options if each.method == "scorer"]
        columns = ("predictions", "references")
        return [*(name for name in names if name not in columns), "references_format"]

    def provenance(self, references: Iterable[Any], **fields: object) -> Json:
        """Return the part of a result that describes what the scores depend on.

        Args:
            references: the decoded references, or the part of them that is scored.
            **fields: further fields of the signature. Those that are None are left out.

        Returns:
            signature: one line, see ``signature()``. deviations: what distinguishes the scores from
                the official ones, in sentences. An empty list if they are official.
        """
        # the module's name, also where evaluate loads a copy of it
        score = type(self).__module__.rpartition(".")[2]
        scored = list(references)
        line = signature(score, references=digest(scored), **fields, asked=len(scored))
        return {
            "signature": line,
            "deviations": deviations(line, benchmark(self.BENCHMARK).declaration(score)),
        }

    def add_batch(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> None:
        """Add a list of predictions and the list of their references.

        Raises:
            InputError: one list is missing, they differ in length, or an item cannot be an answer.
        """
        columns = {"predictions": predictions, "references": references}
        if missing := [name for name, column in columns.items() if column is None]:
            raise InputError(f"{' and '.join(missing)} missing: predictions and references are required")
        encoded = {name: _encode(name, column) for name, column in columns.items()}
        counts = {name: len(column) for name, column in encoded.items()}
        if len(set(counts.values())) > 1:
            raise InputError(
                f"{counts['predictions']} predictions for {counts['references']} references; expected one for each"
            )
        super().add_batch(**encoded, **kwargs)  # type: ignore[misc]

    def add(self, *, prediction: Any = None, reference: Any = None, **kwargs: Any) -> None:
        """Add one prediction (None: unanswered) and its reference."""
        encoded = {
            "prediction": _text(prediction, "prediction"),
            "reference": _text(reference, "reference"),
        }
        super().add(**encoded, **kwargs)  # type: ignore[misc]

    def compute(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> Any:
        """Compute the scores of the given lists, or of the items added before."""
        if predictions is None and references is None and len(self) == 0:  # type: ignore[arg-type]
            raise InputError(
                "nothing to score: pass predictions and references, or add some before compute()"
            )
        options = self._options()
        if unknown := sorted(kwargs.keys() - options):
            name = type(self).__module__.rpartition(".")[2]
            raise unknown_name(f"the metric {name} has no option", unknown[0], options)
        return super().compute(  # type: ignore[misc]
            predictions=predictions, references=references, **kwargs
        )


@functools.cache
def _features() -> Any:
    import datasets

    class Encoded(datasets.Features):
        """Columns of strings that need no encoding: to check each string takes longer than everything else."""

        def encode_batch(self, batch: Any) -> Any:
            return batch

    return Encoded


def decoded(
    predictions: Iterable[str],
    references: Iterable[str],
    references_format: str = "auto",
    *,
    strings: bool = False,
) -> tuple[list[Any], list[Any]]:
    """Return predictions and references as they were passed to ``compute``.

    Args:
        predictions: an encoded column.
        references: an encoded column, in either of the two formats that users have.
        references_format: "json": every reference is an answer encoded as JSON, as in a dataset's
            ``answer`` column. "python": every reference is an answer itself. "auto": JSON if all of
            them are strings that contain JSON.
        strings: whether the answers are strings, so that "auto" also needs JSON strings.

    Returns:
        The predictions, with ``UNANSWERED`` for None, and the references.
    """
    if references_format not in FORMATS:
        raise unknown_name("unknown references_format", references_format, FORMATS)
    answers = [UNANSWERED if prediction is None else prediction for prediction in _loaded(predictions)]
    targets = _loaded(references)
    if references_format != "python":
        try:
            parsed = [loads(target) for target in targets]
        except InputError:
            if references_format == "json":
                raise
        else:
            if (
                references_format == "json"
                or not strings
                or all(isinstance(target, str) for target in parsed)
            ):
                targets = parsed
    return answers, targets


def _encode(name: str, column: Any) -> list[str]:
    if isinstance(column, str | dict) or not isinstance(column, Iterable):
        raise InputError(
            f"{name} is a {type(column).__name__}; it must be a list with one item per question"
        )
    items = list(column)
    if set(map(type, items)) == {str}:
        with suppress(UnicodeEncodeError):  # lone surrogates
            "".join(items).encode()
            # the same as below, in a tenth of the time
            return list(map(encode_basestring_ascii, items))
    return [_text(item, f"{name}[{i}]") for i, item in enumerate(items)]


def _text(item: Any, where: str) -> str:
    try:
        text = dumps(item)  # checks the types
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    # Escaped text can represent what Arrow cannot.
    return text if text.isascii() else json.dumps(json.loads(text))


def _loaded(column: Iterable[str]) -> list[Any]:
    # one call, because a call takes longer than a short text
    items: list[Any] = json.loads(f"[{','.join(column)}]")
    return items
