"""What all tasks share: metadata, the choice of samples, and the reference and groups that a report shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from inspect_ai.dataset import Sample

from qabench.errors import InputError


def task_metadata(benchmark: str, config: str, setting: str, data: str) -> dict[str, Any]:
    """A task's metadata; see ``qabench.tasks``."""
    return {"benchmark": benchmark, "config": config, "setting": setting, "data": data}


def sample(
    id: str,
    prompt: str | list[Any],
    question: str,
    reference: str,
    groups: Mapping[str, Sequence[str]],
    **metadata: Any,
) -> Sample:
    """One question as Inspect has it; ``metadata`` is the task's own, such as the reference as JSON text."""
    shown = {"question": question, "reference": reference, "groups": {name: list(of) for name, of in groups.items()}}
    return Sample(id=id, input=prompt, target=reference, metadata=shown | metadata)


def chosen(
    samples: Iterable[Sample], ids: Sequence[str] | str | None, category: Sequence[str] | str | None
) -> list[Sample]:
    """The samples with these ids, of these categories (or domains, or fields); all where neither is given.

    Raises:
        InputError: an id or a category that there is not.
    """
    every = list(samples)
    wanted_ids, wanted = _texts(ids), _texts(category)
    groups = {str(one.id): {g for of in (one.metadata or {})["groups"].values() for g in of} for one in every}
    known = set().union(*groups.values()) if groups else set()
    if missing := [id for id in wanted_ids if id not in groups]:
        raise InputError(f"no question has the id {missing[0]!r}; ids are such as {next(iter(groups), '')!r}")
    if missing := [name for name in wanted if name not in known]:
        raise InputError(f"no question is in {missing[0]!r}; allowed: {', '.join(sorted(known))}")
    kept = [one for one in every if not wanted_ids or str(one.id) in wanted_ids]
    return [one for one in kept if not wanted or groups[str(one.id)] & set(wanted)]


def _texts(value: Sequence[str] | str | None) -> list[str]:
    # On Inspect's command line a list comes as one text with commas.
    if value is None:
        return []
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else [str(part) for part in value]
