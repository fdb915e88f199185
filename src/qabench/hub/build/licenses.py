"""The licenses of the benchmarks' data, and what they require of publishers of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qabench.errors import InputError
from qabench.loading_scripts import FOLDER


@dataclass(frozen=True, slots=True)
class License:
    """A license: its name, the URL of its terms, and a short version of its requirements for publishers of the data."""

    name: str
    url: str
    asks: tuple[str, ...]


_NAME_THEM = "name the authors, link to the license, and state the changes (card and LICENSE.md do this)"
_SHARE_ALIKE = "publish adaptations under the same license"
# By the identifiers that the Hub uses in cards.
LICENSES = {
    "cc-by-sa-4.0": License(
        "CC BY-SA 4.0", "https://creativecommons.org/licenses/by-sa/4.0/", (_NAME_THEM, _SHARE_ALIKE)
    ),
    "cc-by-nc-sa-4.0": License(
        "CC BY-NC-SA 4.0",
        "https://creativecommons.org/licenses/by-nc-sa/4.0/",
        ("no commercial use", _NAME_THEM, _SHARE_ALIKE),
    ),
    "mit": License(
        "MIT",
        "https://opensource.org/license/mit",
        ("keep the copyright notice and the license's text (LICENSE.md does this)",),
    ),
}


def license_of(name: str) -> License:
    """The license of a benchmark's data according to its card.

    Raises:
        InputError: the card's license is not one of ``LICENSES``, or the folder has no LICENSE.md.
    """
    from huggingface_hub import metadata_load

    folder = FOLDER / name
    stated = (metadata_load(folder / "README.md") or {}).get("license")
    if stated not in LICENSES or not (folder / "LICENSE.md").is_file():
        raise InputError(
            f"{name} cannot be published: its card has the license {stated!r}; allowed: {', '.join(LICENSES)}, "
            "with a LICENSE.md next to the card"
        )
    return LICENSES[stated]


def check_accepted(names: Sequence[str], accepted: bool) -> None:
    """Checks that the licenses of these benchmarks were accepted.

    Raises:
        InputError: they were not; the message lists each license and its requirements.
    """
    licenses = {name: license_of(name) for name in names}
    if accepted or not licenses:
        return
    lines = ["the data belongs to its authors, and their licenses have these requirements:"]
    for name, license in licenses.items():
        lines += [f"  {name}: {license.name}, {license.url}", *(f"    - {asked}" for asked in license.asks)]
    raise InputError("\n".join([*lines, "Nothing was published. Use --accept-licenses if you will comply with them."]))
