"""ExpertQA's fact scores with any model: claims are split into atomic claims, each judged by the given evidence.

Source: Malaviya et al., ExpertQA, NAACL 2024 (https://arxiv.org/abs/2309.07852), and the scripts below
``modeling/fact_score`` of its repository, after Min et al., FActScore, EMNLP 2023; tests execute them for comparison.
``qabench.scoring.factscore`` says how replies are read.
"""

from qabench.benchmarks.expertqa.facts.scorer import FactScorer, fact_scorer
from qabench.benchmarks.expertqa.facts.scoring import FactScoreRun, plan_facts, score_facts

__all__ = ["FactScoreRun", "FactScorer", "fact_scorer", "plan_facts", "score_facts"]
