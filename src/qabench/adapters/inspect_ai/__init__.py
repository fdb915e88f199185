"""Tasks, solvers and scorers for Inspect AI, built from what benchmarks declare.

``registry`` is the entry point for commands such as ``inspect eval qabench/fanoutqa_closed_book``.

Content of logs, which ``qabench.runs`` reads:

- the task's metadata: {"benchmark", "config", "setting", "data", "available", "asked_with"} (data:
  the digest of the questions' file; available: the number of questions of the config; asked_with:
  the signature fields that say how the model is asked), and "unscored", the reason, if the answers
  are not scored;
- a sample's id is the benchmark's. Its metadata has "question", "reference" (strings for readers)
  and "groups" ({grouping: [group, ...]});
- a score's value is {column: number}, its answer is the text that was scored, and its metadata is
  {"detail", "signatures": {group: signature}}, and "statuses" and "usage" if there are any.

``detail`` by benchmark (its texts are unchanged unless stated otherwise):

- fanoutqa: {"found": [text], "missing": [text]}, both normalized;
- felm: {"segments": [{"text", "label", "verdict", "type", "comment"}], "replies": [text],
  "reasons": [text], "claims": [{"segment", "text"}]}. True in "label" and "verdict" means factual.
  A missing verdict is None. "reasons" has one text per reply without a verdict. "claims" is absent
  if segments were judged;
- expertqa: {"claims": [{"text", "evidence": [text], "label"}], "passages": [{"id", "text"}]}, label
  "Y", "N" or None;
- fastbook: {"passages": [{"id", "text", "score"}], "components": [{"text", "contexts", "rank"}],
  "k"}, rank from 1, None if it was not retrieved.
"""
