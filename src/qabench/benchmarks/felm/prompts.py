"""The prompts of FELM's evaluators: the authors' (see ``official_prompts``), qabench's, or a user's template.

Source of the protocol: Chen et al., FELM, NeurIPS 2023 (https://arxiv.org/abs/2310.00741), and ``eval/eval.py`` and
``eval/prompt`` of hkust-nlp/felm.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from qabench.benchmarks.felm.official_prompts import OfficialPrompts
from qabench.errors import InputError, SourceUnavailable
from qabench.prompts.template import DATA_NOT_INSTRUCTIONS, Prompt, check_fields, read_prompt

DOMAINS = ("wk", "science", "math", "reasoning", "writing_rec")
CLAIM_DOMAINS = ("wk", "science", "writing_rec")  # the domains with prompts for claims and with references
OFFICIAL, QABENCH, AUTO = "official", "qabench", "auto"
KINDS = {"raw": "raw", "cot": "cot", "cot-cons": "cot", "link": "link", "content": "content"}
SYSTEM = "You are a helpful assistant."
REFERENCES = {"link": "links", "content": "texts"}
ERRORS = {
    "math": "an error of calculation or of reasoning",
    "reasoning": "an error of reasoning or of fact",
}
MATERIAL = """<question>
{question}
</question>

"""
CAUTION = f"{DATA_NOT_INSTRUCTIONS}\n\n"
EXTRACT = Prompt(
    QABENCH,
    system=SYSTEM,
    user=f"""An answer to a question was cut into numbered segments. List the factual claims that each segment makes.

{MATERIAL}<segments>
{{segments}}
</segments>

{CAUTION}A claim is one short sentence that is true or false and can be understood on its own: replace pronouns by what
they refer to. Report what the answer says, whether it is right or wrong. A segment without claims gets none. For each
segment write the following, and nothing else:

Segment 1:
Claim 1. ...
Claim 2. ...""",
)
_FIRST_LETTER = re.compile("[A-Za-z]")


def numbered(texts: Sequence[str]) -> str:
    """One line per text, numbered from 1; each text is shown from its first ASCII letter on (it may have none)."""
    found = [(text, _FIRST_LETTER.search(text)) for text in texts]
    return "\n".join(f"{i}. {text[at.start() :] if at else ''}" for i, (text, at) in enumerate(found, start=1))


@dataclass(frozen=True)
class FelmPrompts:
    """The prompts of one method.

    Attributes:
        name: "official", "qabench", or the user's file.
        verdicts: (domain, kind) -> the prompt for verdicts on segments; kinds are "raw", "cot", "link", "content".
        claim_verdicts: the same for verdicts on claims; empty without claims.
        extraction: domain -> the prompt for the claims; empty without claims.
    """

    name: str
    verdicts: Mapping[tuple[str, str], Prompt]
    claim_verdicts: Mapping[tuple[str, str], Prompt] = field(default_factory=dict)
    extraction: Mapping[str, Prompt] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name, and twelve hex digits of the digest of all prompts, for signatures."""
        parts = [
            f"{part} {key} {prompt.digest}"
            for part in ("verdicts", "claim_verdicts", "extraction")
            for key, prompt in sorted(getattr(self, part).items())
        ]
        return f"{self.name}-{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()[:12]}"


def felm_prompts(
    method: str,
    claims: bool = False,
    prompt: str | Path = AUTO,
    *,
    shows_references: bool = True,
    for_vicuna: bool = False,
) -> FelmPrompts:
    """The prompts that a method needs.

    Args:
        method: raw, cot, cot-cons, link or content.
        claims: whether claims are judged, in the domains that have prompts for it.
        prompt: "official", the authors' prompts; "qabench", this project's; "auto", the authors' if their files are
            available, else this project's, with a warning; or a file (see ``read_prompt``) for all domains, with the
            fields {question}, {segments} (segments or claims, numbered) and, for link and content, {references}.
        shows_references: False leaves references out of link and content prompts, as the authors' script does.
        for_vicuna: whether the prompt is the authors' for Vicuna; see ``OfficialPrompts``.

    Raises:
        InputError: an unknown method, or a prompt that cannot be used.
        SourceUnavailable: "official", and the authors' prompts are not available.
    """
    if method not in KINDS:
        raise InputError(f"unknown method {method!r}; allowed: {', '.join(KINDS)}")
    if prompt in (AUTO, OFFICIAL):
        try:
            return _made(OfficialPrompts(shows_references, for_vicuna), method, claims)
        except SourceUnavailable as error:
            if prompt == OFFICIAL:
                raise SourceUnavailable(
                    f"a prompt of FELM's authors is not available: {error}\nprompt=qabench uses qabench's prompts, "
                    "whose scores are not official"
                ) from error
            warnings.warn(
                "the prompts of FELM's authors are not available (`qabench fetch felm`); using qabench's prompts, "
                "whose scores are not official",
                stacklevel=2,
            )
    if prompt in (AUTO, QABENCH):
        return _made(_OwnPrompts(shows_references), method, claims)
    path = Path(str(prompt))
    if not path.is_file():
        raise InputError(f"the prompt is {str(prompt)!r}; allowed: official, qabench, auto, or a file")
    fields = {"question", "segments"} | ({"references"} if KINDS[method] in REFERENCES else set())
    return _made(_UsersPrompt(path, fields), method, claims)


def kind_of(method: str, domain: str, has_references: bool) -> str:
    """The kind of prompt for a response: link and content become raw if there are no references to show."""
    kind = KINDS[method]
    return "raw" if kind in REFERENCES and not (domain in CLAIM_DOMAINS and has_references) else kind


class _Maker(Protocol):
    name: str

    def verdicts(self, domain: str, kind: str, unit: str) -> Prompt: ...

    def extraction(self, domain: str) -> Prompt: ...


def _made(make: _Maker, method: str, claims: bool) -> FelmPrompts:
    # Always for all domains, so that the label of a method is the same in all configs.
    by_claims = CLAIM_DOMAINS if claims else ()
    return FelmPrompts(
        make.name,
        {key: make.verdicts(*key, "segments") for key in _keys(method, DOMAINS)},
        {key: make.verdicts(*key, "claims") for key in _keys(method, by_claims)},
        {domain: make.extraction(domain) for domain in by_claims},
    )


def _keys(method: str, domains: Sequence[str]) -> list[tuple[str, str]]:
    kind = KINDS[method]
    if kind not in REFERENCES:
        return [(domain, kind) for domain in domains]
    with_references = [domain for domain in domains if domain in CLAIM_DOMAINS]
    return [(domain, "raw") for domain in domains] + [(domain, kind) for domain in with_references]


class _OwnPrompts:
    """Builds qabench's prompts."""

    name = QABENCH

    def __init__(self, shows_references: bool) -> None:
        self.shows_references = shows_references

    def verdicts(self, domain: str, kind: str, unit: str) -> Prompt:
        error = ERRORS.get(domain, "a factual error")
        shown = REFERENCES.get(kind) if self.shows_references else None
        how = f"was cut into numbered {unit}" if unit == "segments" else "was broken down into numbered claims"
        parts = [
            f"An answer to a question {how}. Find those that contain {error}.\n\n{MATERIAL}",
            f"<{unit}>\n{{segments}}\n</{unit}>\n\n",
        ]
        if shown:
            parts.append(f"<references>\n{{references}}\n</references>\n\nUse the references ({shown}). ")
        parts.append(CAUTION)
        answer = (
            f'"Answer: " and the numbers of the {unit} with an error, such as "Answer: 2, 5"; or "Answer: ALL_CORRECT" '
            "if none has one."
        )
        if kind == "cot":
            parts.append(
                f'Begin with "Thought: " and say in a few words what is wrong in which of the {unit}; do not comment '
                f"on those that are right. The last line is {answer}"
            )
        else:
            parts.append(f"Reply with one line and no more: {answer}")
        return Prompt(self.name, "".join(parts), SYSTEM)

    def extraction(self, domain: str) -> Prompt:
        return EXTRACT


class _UsersPrompt:
    """The prompt of a user's file, for everything except the extraction of claims."""

    def __init__(self, path: Path, fields: set[str]) -> None:
        given = check_fields(read_prompt(path), fields)
        self.prompt = Prompt(given.name, given.user, given.system or SYSTEM)
        self.name = given.name

    def verdicts(self, domain: str, kind: str, unit: str) -> Prompt:
        return self.prompt

    def extraction(self, domain: str) -> Prompt:
        return EXTRACT
