"""Tasks for lm-evaluation-harness with this package's data and scores.

    lm_eval run --include_path "$(qabench path lm-eval)" --tasks qabench ...

Each benchmark has its tasks in ``qabench/benchmarks/NAME/lm_eval``; ``lm_eval ls tasks --include_path ...`` lists them.
The tag ``qabench`` selects one task per benchmark and method, ``qabench_sample`` those on the shipped samples.

Data comes from a mirror, the cache or a download as everywhere in qabench, never from the Hub. The scores are those of
``qabench score`` on the same replies, to the last digit. Only if several processes share a run can the last digit of a
mean differ, because the harness then adds up in another order. Everything that scores depend on is in the results'
``configs``, under ``metadata``: the task's version and the signatures.

Nothing imports the harness before the harness itself imports this.
"""

from __future__ import annotations

from qabench.lm_eval.samples import generations

__all__ = ["generations"]
