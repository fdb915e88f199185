"""Tasks for lm-evaluation-harness with this package's data and scores.

    lm_eval run --include_path "$(qabench path lm-eval)" --tasks qabench ...

Each benchmark has its tasks in ``qabench/benchmarks/NAME/lm_eval``; ``lm_eval ls tasks --include_path ...`` lists them.
The tag ``qabench`` selects one task per benchmark and method, ``qabench_sample`` those on the shipped samples.

Data comes from a mirror, the cache or a download, as everywhere in qabench, never from the Hub. The scores equal those
of ``qabench score`` on the same replies to the last digit, except in runs on several processes, where the harness adds
up in another order. Everything that scores depend on is in the results' ``configs``, under ``metadata``: the task's
version and the signatures.

Only the harness itself imports modules that need the harness.
"""

from __future__ import annotations

from qabench.lm_eval.samples import generations

__all__ = ["generations"]
