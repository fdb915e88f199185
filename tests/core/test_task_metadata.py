"""The metadata of the tasks of all benchmarks."""

from __future__ import annotations

import pytest

from qabench.benchmarks import benchmark, benchmark_names


@pytest.mark.parametrize("name", benchmark_names())
def test_tasks_count_the_questions_of_the_config(name: str) -> None:
    # Without this number, a run with a limit would count as official.
    pytest.importorskip("inspect_ai")
    task = benchmark(name).task_function(benchmark(name).settings[0])
    whole = task(config="sample")
    first = str(whole.dataset[0].id)
    part = task(config="sample", ids=first)
    assert (len(part.dataset), part.metadata["available"]) == (1, len(whole.dataset))
