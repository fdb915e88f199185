"""What the licences of the benchmarks' data ask of those who pass it on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qabench.errors import InputError
from qabench.loading_scripts import FOLDER


@dataclass(frozen=True, slots=True)
class Licence:
    """A licence: its name, where its terms are, and what they ask of whoever publishes the data, in short."""

    name: str
    url: str
    asks: tuple[str, ...]


_NAME_THEM = "name the authors, link to the licence, and say what was changed: card and LICENSE.md do"
_SHARE_ALIKE = "publish adaptations under the same licence"
# By the identifiers that the Hub uses in cards.
LICENCES = {
    "cc-by-sa-4.0": Licence(
        "CC BY-SA 4.0", "https://creativecommons.org/licenses/by-sa/4.0/", (_NAME_THEM, _SHARE_ALIKE)
    ),
    "cc-by-nc-sa-4.0": Licence(
        "CC BY-NC-SA 4.0",
        "https://creativecommons.org/licenses/by-nc-sa/4.0/",
        ("no commercial use", _NAME_THEM, _SHARE_ALIKE),
    ),
    "mit": Licence(
        "MIT",
        "https://opensource.org/license/mit",
        ("keep the copyright notice and the licence's text: LICENSE.md does",),
    ),
}


def licence_of(name: str) -> Licence:
    """The licence of a benchmark's data, as its card states it.

    Raises:
        InputError: the card's licence is none that may be published under, or the folder has no LICENSE.md.
    """
    from huggingface_hub import metadata_load

    folder = FOLDER / name
    stated = (metadata_load(folder / "README.md") or {}).get("license")
    if stated not in LICENCES or not (folder / "LICENSE.md").is_file():
        raise InputError(
            f"{name} cannot be published: its card states the licence {stated!r}; known are {', '.join(LICENCES)}, "
            "and a LICENSE.md must go with the data"
        )
    return LICENCES[stated]


def check_accepted(names: Sequence[str], accepted: bool) -> None:
    """Nothing where the licences of these benchmarks were accepted.

    Raises:
        InputError: they were not; the message lists each licence and what it asks.
    """
    licences = {name: licence_of(name) for name in names}
    if accepted or not licences:
        return
    lines = ["the data belongs to others, whose licences ask something of whoever publishes it:"]
    for name, licence in licences.items():
        lines += [f"  {name}: {licence.name}, {licence.url}", *(f"    - {asked}" for asked in licence.asks)]
    raise InputError("\n".join([*lines, "Nothing was published. Give --accept-licences to keep to them."]))
