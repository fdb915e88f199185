"""Clusters of questions that belong together, such as questions about one passage.

Questions of a cluster are not independent, and treating them as independent makes intervals too
narrow. So intervals and tests count a cluster as one unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from qabench.errors import unknown_name
from qabench.evaluation import Evaluation

# The field whose value is the cluster of a question in a log. The readers of logs call
# ``cluster_of`` while they have all fields of a question. Later, only fields with short values are
# left, as groupings, and a cluster may be a long text, such as a passage.
_KEY: ContextVar[str | None] = ContextVar("cluster", default=None)


@contextmanager
def clusters_named(key: str | None) -> Iterator[None]:
    """Cluster questions by the value of a field in all logs that are read within the block."""
    token = _KEY.set(key)
    try:
        yield
    finally:
        _KEY.reset(token)


def cluster_of(fields: Mapping[str, object]) -> str | None:
    """Return the cluster of a question with these fields, or None if the field is not set."""
    key = _KEY.get()
    if key is None or fields.get(key) is None:
        return None
    return str(fields[key])


def with_clusters(evaluations: Sequence[Evaluation], key: str | None) -> list[Evaluation]:
    """Return evaluations whose questions are clustered by a field or a grouping.

    A question without the field forms its own cluster.

    Raises:
        InputError: no question of an evaluation has the field.
    """
    if key is None:
        return list(evaluations)
    clustered = []
    for evaluation in evaluations:
        records = []
        for record in evaluation.records:
            members = record.groups.get(key, ())
            # The reader of a log has looked up the field already (``cluster_of``).
            if record.cluster is None and members:
                record = replace(record, cluster="\n".join(members))
            records.append(record)
        if all(record.cluster is None for record in records):
            raise unknown_name(
                f"{evaluation.path}: no question has the field", key, evaluation.groupings()
            )
        clustered.append(replace(evaluation, records=records))
    return clustered
