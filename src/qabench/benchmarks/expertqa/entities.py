"""Find the dates and numbers in a text with a spaCy model.

They are needed to post-process atomic claims as the authors do. See
``qabench.benchmarks.expertqa.factscore.post_processed``.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from qabench.benchmarks.expertqa.factscore import Entities, entities_of
from qabench.text.lemmatizers import MODEL_VARIABLE, OFFICIAL_MODEL, SpacyLemmatizer, find_spec_of
from qabench.text.tokenizer import with_linear_tokenizer

# The named entity recognizer does not need these components, which take most of the time.
UNUSED_PIPES = ["tagger", "parser", "attribute_ruler", "lemmatizer"]


def load_entities() -> tuple[str, Entities]:
    """Return the name and version of a spaCy model, and the function that finds entities with it.

    QABENCH_SPACY_MODEL is the name of a package or a folder. The default is the authors' model,
    en_core_web_sm.
    """
    return _entities_by(os.environ.get(MODEL_VARIABLE) or OFFICIAL_MODEL)


@cache
def _entities_by(model: str) -> tuple[str, Entities]:
    # The lemmatizer checks that the model is installed, and reads its version.
    lemmatizer = SpacyLemmatizer(model)
    import spacy

    is_package = find_spec_of(model) is not None
    source = model if is_package else lemmatizer.folder
    nlp: Any = spacy.load(source, exclude=UNUSED_PIPES)
    with_linear_tokenizer(nlp)

    def spans(text: str) -> list[tuple[str, str]]:
        return [(span.text, span.label_) for span in nlp(text).ents]

    @cache
    def entities(text: str) -> list[str]:
        return entities_of(text, spans)

    name_and_version, _, _ = lemmatizer.versions.partition("+")
    return name_and_version, entities
