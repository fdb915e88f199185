"""The prompts of FELM's evaluators: the authors', qabench's, or a user's template.

Source of the protocol: Chen et al., FELM, NeurIPS 2023 (https://arxiv.org/abs/2310.00741), and ``eval/eval.py`` and
``eval/prompt`` of hkust-nlp/felm.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from qabench.errors import InputError, SourceUnavailable
from qabench.loading_scripts import open_path
from qabench.tasks.prompt_source import PromptSource
from qabench.tasks.prompts import DATA_NOT_INSTRUCTIONS, Prompt, check_fields, read_prompt

DOMAINS = ("wk", "science", "math", "reasoning", "writing_rec")
CLAIM_DOMAINS = ("wk", "science", "writing_rec")  # the domains with prompts for claims and with references
OFFICIAL, QABENCH, AUTO = "official", "qabench", "auto"
KINDS = {"raw": "raw", "cot": "cot", "cot-cons": "cot", "link": "link", "content": "content"}
SYSTEM = "You are a helpful assistant."
REFERENCES = {"link": "links", "content": "texts"}
SEGMENTS, CLAIMS = "segments", "claims"
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
SCRIPT = "eval/eval.py"
_FIRST_LETTER = re.compile("[A-Za-z]")

EXTRACTION = "extraction"
PromptFor = Callable[[str, str, str], Prompt]
"""Return the prompt for a domain, a kind ("raw", "cot", "link", "content", EXTRACTION) and a unit."""


def prompt_file(domain: str, kind: str, unit: str) -> str:
    """Return the authors' file with a prompt, below ``eval/prompt``; writing_rec has the files of wk."""
    domain = "wk" if domain == "writing_rec" else domain
    short = "sci" if domain == "science" else domain
    if unit == SEGMENTS:
        name = f"prompt_{short}_{'ret_' * (kind in REFERENCES)}{kind}" if domain in CLAIM_DOMAINS else kind
        return f"segment/{short}/{name}.txt"
    names = {"raw": domain, "cot": f"{domain}_cot", EXTRACTION: f"extract_{short}"}
    return f"claim/{short}/claim_{names.get(kind, f'{short}_{kind}')}.txt"


def numbered(texts: Sequence[str]) -> str:
    """Return one line per text, numbered from 1; each is shown from its first ASCII letter on, if any."""
    starts = [(text, _FIRST_LETTER.search(text)) for text in texts]
    return "\n".join(f"{i}. {text[at.start() :] if at else ''}" for i, (text, at) in enumerate(starts, start=1))


@dataclass(frozen=True)
class FelmPrompts:
    """The prompts of one method: for verdicts by (domain, kind), for the claims (if claims are judged) by domain.

    Kinds are "raw", "cot", "link", "content". The name is "official", "qabench", or the user's file.
    """

    name: str
    verdicts: Mapping[tuple[str, str], Prompt]
    claim_verdicts: Mapping[tuple[str, str], Prompt] = field(default_factory=dict)
    extraction: Mapping[str, Prompt] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Return the name, and twelve hex digits of the digest of all prompts, for signatures."""
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
    """Return the prompts that a method needs; see ``qabench.benchmarks.felm.method.felm_method``.

    Args:
        method: raw, cot, cot-cons, link or content.
        claims: whether claims are judged, in the domains that have prompts for it.
        prompt: "official"; "qabench"; "auto", which warns if it is not official; or a file (see ``read_prompt``) for
            all domains, with the fields {question}, {segments} (segments or claims, numbered) and, for link and
            content, {references}.
        shows_references: whether link and content prompts show references. The authors' script has the strings for it,
            but compares the method with wrong names, and so never shows any.
        for_vicuna: whether the authors' prompt is for Vicuna: plain text with two more lines at the end.

    Raises:
        InputError: an unknown method, or a prompt that cannot be used.
        SourceUnavailable: "official", and the authors' prompts are not available.
    """
    if method not in KINDS:
        raise InputError(f"unknown method {method!r}; allowed: {', '.join(KINDS)}")
    if prompt in (AUTO, OFFICIAL):
        try:
            return _prompts(OFFICIAL, method, claims, partial(_official_prompt, shows_references, for_vicuna))
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
        return _prompts(QABENCH, method, claims, partial(_own_prompt, shows_references))
    path = Path(str(prompt))
    if not path.is_file():
        raise InputError(f"the prompt is {str(prompt)!r}; allowed: official, qabench, auto, or a file")
    fields = {"question", "segments"} | ({"references"} if KINDS[method] in REFERENCES else set())
    template = check_fields(read_prompt(path), fields)
    template = Prompt(template.name, template.user, template.system or SYSTEM)
    return _prompts(
        template.name, method, claims, lambda domain, kind, unit: EXTRACT if kind == EXTRACTION else template
    )


def kind_of(method: str, domain: str, has_references: bool) -> str:
    """Return the kind of prompt for a response: link and content become raw if there are no references to show."""
    kind = KINDS[method]
    return "raw" if kind in REFERENCES and not (domain in CLAIM_DOMAINS and has_references) else kind


def _prompts(name: str, method: str, claims: bool, prompt_for: PromptFor) -> FelmPrompts:
    """Return the prompts for all domains, so that the label of a method is the same in all configs."""
    keys = [
        (domain, kind) for domain in DOMAINS for kind in {kind_of(method, domain, shown) for shown in (True, False)}
    ]
    claim_keys = [key for key in keys if claims and key[0] in CLAIM_DOMAINS]
    return FelmPrompts(
        name,
        {key: prompt_for(*key, SEGMENTS) for key in keys},
        {key: prompt_for(*key, CLAIMS) for key in claim_keys},
        {domain: prompt_for(domain, EXTRACTION, CLAIMS) for domain, _ in claim_keys},
    )


def _own_prompt(shows_references: bool, domain: str, kind: str, unit: str) -> Prompt:
    """Return qabench's prompt."""
    if kind == EXTRACTION:
        return EXTRACT
    error = ERRORS.get(domain, "a factual error")
    how = f"was cut into numbered {unit}" if unit == SEGMENTS else "was broken down into numbered claims"
    parts = [
        f"An answer to a question {how}. Find those that contain {error}.\n\n{MATERIAL}",
        f"<{unit}>\n{{segments}}\n</{unit}>\n\n",
    ]
    if shows_references and kind in REFERENCES:
        parts.append(f"<references>\n{{references}}\n</references>\n\nUse the references ({REFERENCES[kind]}). ")
    parts.append(CAUTION)
    if kind == "cot":
        parts.append(
            f'Begin with "Thought: " and say in a few words what is wrong in which of the {unit}; do not comment '
            "on those that are right. The last line is "
        )
    else:
        parts.append("Reply with one line and no more: ")
    parts.append(
        f'"Answer: " and the numbers of the {unit} with an error, such as "Answer: 2, 5"; or "Answer: ALL_CORRECT" '
        "if none has one."
    )
    return Prompt(QABENCH, "".join(parts), SYSTEM)


def _official_prompt(shows_references: bool, for_vicuna: bool, domain: str, kind: str, unit: str) -> Prompt:
    """Return the authors' prompt: the text of a file, then question and segments in the format of their script."""
    text = open_path("felm", f"eval/prompt/{prompt_file(domain, kind, unit)}").read_text(encoding="utf-8")
    (question, segments, links, documents), end, system = _strings(open_path("felm", SCRIPT), for_vicuna)
    if unit == CLAIMS and kind != EXTRACTION:  # the script asks only about segments
        segments = segments.replace("Segments", "Claims")
    references = {"link": links, "content": documents}.get(kind) if shows_references else None
    tail = f"{references}{{references}}\n" if references else ""
    return Prompt(OFFICIAL, f"{text}\n{question}{{question}}{segments}{{segments}}\n{tail}{end}", system)


@cache
def _strings(script: Path, for_vicuna: bool) -> tuple[list[str], str, str | None]:
    """Return the script's strings before question, segments, links and documents, its end and system message."""
    source = PromptSource(script)
    parts = source.appended("eval_prompt", "run", fields={"prompt": "question", "b": "segments"})
    end = "".join(source.appended("eval_prompt", "gene")) if for_vicuna else ""
    system = None if for_vicuna else source.constants("prefix", "gene")[-1]
    return [parts[0], parts[2], *parts[4:]], end, system
