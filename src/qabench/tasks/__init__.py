"""The benchmarks as Inspect AI tasks: samples, solvers and scorers; ``inspect eval qabench/fanoutqa_closed_book``.

What logs hold, so that ``qabench.runs`` can read any of them back:

- the task's metadata: {"benchmark", "config", "setting", "data", "available"} (data: the digest of the questions'
  file; available: the number of questions of the config, if known);
- a sample's id is the benchmark's; its metadata has "question", "reference" (texts for a person) and "groups"
  ({grouping: [group, ...]});
- a score's value is {column: number}, its answer the text that was scored, its metadata {"detail", "signatures"}, the
  latter {family: signature}.

``detail`` by benchmark, texts as they are:

- fanoutqa: {"found": [text], "missing": [text]}, both normalised;
- felm: {"segments": [{"text", "label", "verdict", "type", "comment"}], "replies": [text], "reasons": [text], "claims"},
  True = factual, verdict None where there is none, a reason for each reply without a verdict, claims None where
  segments were judged;
- expertqa: {"claims": [{"text", "evidence": [text], "label"}], "passages": [{"id", "text"}]}, label "Y", "N" or None;
- fastbook: {"passages": [{"id", "text", "score"}], "components": [{"text", "contexts", "rank"}], "k"}, rank from 1,
  None where it was not retrieved.
"""
