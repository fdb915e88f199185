"""Types that validate the rows of other harnesses' logs.

A type has most of the fields that are read. Other fields are not validated. The types ``Shared...``
are those of Every Eval Ever, a schema for the results of all harnesses. Import this module only
where such a log is read: importing pydantic takes a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from qabench.data.rows import Row, SourceRow
from qabench.errors import DataError
from qabench.io.redaction import printable

# The maximum number of characters of a value that an error quotes.
LONGEST_VALUE = 60


class LoggedObject(BaseModel):
    """Fields of an object. Values are not converted: "1" is not a number, and 1 is not a string."""

    model_config = ConfigDict(strict=True, protected_namespaces=())


class LmEvalSample(LoggedObject):
    """A line in a file of lm-evaluation-harness samples."""

    doc_id: int | str
    doc: dict[str, Any]
    target: Any = None
    filtered_resps: Any = None
    filter: str | None = None
    # lm-evaluation-harness has written these names since version 0.4.6.
    metrics: list[str] = []
    doc_hash: str | None = None


class NamedFilter(LoggedObject):
    """An item of ``filter_list`` in an lm-evaluation-harness task."""

    name: str | None = None


class LmEvalTask(LoggedObject):
    """The configuration of an lm-evaluation-harness task."""

    filter_list: list[NamedFilter] | None = None
    dataset_name: str | None = None


class LmEvalResults(LoggedObject):
    """The results file of lm-evaluation-harness."""

    model_name: str | None = None
    higher_is_better: dict[str, dict[str, Any]] = {}
    configs: dict[str, LmEvalTask] = {}
    results: dict[str, dict[str, Any]] = {}


class LightevalDoc(LoggedObject):
    """A question in lighteval's details."""

    id: int | str | None = None
    query: str | None = None
    original_query: str | None = None
    choices: list[str | None] | None = None
    gold_index: int | list[int | None] | None = None
    specific: dict[str, Any] | None = None


class LightevalResponse(LoggedObject):
    """A response in lighteval's details."""

    text: str | list[Any] | None = None
    text_post_processed: str | list[Any] | None = None


class LightevalDetail(LoggedObject):
    """A row of lighteval's details."""

    doc: LightevalDoc
    metric: dict[str, Any]
    model_response: LightevalResponse


class SharedInput(LoggedObject):
    """The question of an Every Eval Ever instance."""

    raw: Any = None
    reference: str | list[Any] | None = None


class SharedAnswer(LoggedObject):
    """An item of ``answer_attribution`` in an Every Eval Ever instance."""

    extracted_value: Any = None


class SharedEvaluation(LoggedObject):
    """The score of an Every Eval Ever instance."""

    score: Any = None


class SharedInstance(LoggedObject):
    """A line of an instance-level Every Eval Ever file."""

    sample_id: int | str
    evaluation_name: str = ""
    evaluation_result_id: str | None = None
    model_id: str = ""
    input: SharedInput | None = None
    output: dict[str, Any] | None = None
    answer_attribution: list[SharedAnswer] | None = None
    evaluation: SharedEvaluation
    metadata: dict[str, Any] | None = None
    error: str | None = None


class ScoreDetails(LoggedObject):
    """The aggregate score of an Every Eval Ever result."""

    score: Any = None


class SharedResult(LoggedObject):
    """A result in an Every Eval Ever document."""

    evaluation_name: str | None = None
    evaluation_result_id: str | None = None
    score_details: ScoreDetails | None = None


class SharedDocument(LoggedObject):
    """The Every Eval Ever document with the aggregate, beside a file of instances."""

    evaluation_results: list[SharedResult] | None = None


def checked(row: SourceRow, kind: type[LoggedObject]) -> Row:
    """Check that a row is of this type, and return its fields as they are in the file.

    The type is not returned, because the readers also need fields that it does not have, such as
    ``model_info`` of an Every Eval Ever document.

    Raises:
        DataError: a field has another type. The message names file, line, field, and value.
    """
    try:
        kind.model_validate(row.fields)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        # pydantic's location of an error also has the names of a union's types. Skip them.
        field = ""
        value: Any = row.fields
        is_missing = problem["type"] == "missing"
        for step in problem["loc"]:
            # A missing field is the last step, and is not in the value.
            if isinstance(value, Mapping) and (step in value or is_missing):
                field += f".{step}" if field else str(step)
                value = value.get(step)
            elif isinstance(value, list) and isinstance(step, int):
                field += f"[{step}]"
                value = value[step]
        reason = printable(problem["msg"])
        if not is_missing:
            reason += f", got {printable(repr(value), LONGEST_VALUE)}"
        raise DataError(f"{row.where}, field {printable(field)!r}: {reason}") from None
    return row.fields
