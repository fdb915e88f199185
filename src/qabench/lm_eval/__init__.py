"""Tasks for lm-evaluation-harness: FanOutQA closed-book and FELM, with this package's data and scores.

    lm_eval run --include_path "$(qabench path lm-eval)" --tasks qabench_fanoutqa_closed_book --model ...

Tasks: ``qabench_fanoutqa_closed_book``; ``qabench_felm_raw`` and ``qabench_felm_cot`` over all of FELM, and
``qabench_felm_DOMAIN_raw`` and ``..._cot``; on the shipped samples ``qabench_fanoutqa_closed_book_sample`` and
``qabench_felm_sample_raw`` and ``..._cot``. Tags: ``qabench`` (the first three), ``qabench_felm``,
``qabench_felm_domains_raw``, ``qabench_felm_domains_cot``, ``qabench_sample``.

Data comes from mirror, cache or download as everywhere in qabench, never from the Hub. The figures are those of
``qabench score`` and ``qabench.scoring.felm.felm_scores`` on the same replies, to the last digit; only
where several processes share a run can the last digit of FanOutQA's means differ, for the harness adds up in another
order. What they depend on stands in the results' ``configs``, below ``metadata``: the task's version, and signatures.

Nothing imports the harness before the harness itself imports this.
"""

from __future__ import annotations

from qabench.lm_eval.samples import generations

__all__ = ["generations"]
