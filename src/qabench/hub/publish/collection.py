"""The collection of an organization's datasets and metrics of this project."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from huggingface_hub import Collection, HfApi

Item = tuple[str, str]
"""A kind, such as "dataset", and a repo_id."""
TITLE = "qabench"


def description() -> str:
    """The description of the collection."""
    from qabench.loading_scripts import benchmark_names, dataset_table

    titles = [dataset_table(name).title for name in benchmark_names()]
    return f"{', '.join(titles[:-1])} and {titles[-1]}: data and official scores, by the qabench project."


@dataclass(frozen=True, slots=True)
class Collected:
    """The result for the collection.

    Attributes:
        slug: its name on the Hub; None if it does not exist (yet).
        state: "created", "changed", "unchanged", or in a dry run "to create", "to change".
        items: this project's repositories in the collection, in order.
    """

    slug: str | None
    state: Literal["created", "changed", "unchanged", "to create", "to change"]
    items: list[Item]


def collect(
    api: HfApi,
    org: str,
    order: Sequence[Item],
    published: Container[Item],
    *,
    private: bool = False,
    dry_run: bool = False,
) -> Collected | None:
    """Adds repositories to the organization's collection, which is created if it does not exist.

    This project's items come first, in the given order; other items follow, with their notes. Nothing is removed.

    Args:
        api: huggingface_hub's client.
        org: the organization.
        order: everything that this project publishes, in the order of the collection.
        published: the items to add if they are missing.
        private: whether a new collection is private.
        dry_run: change nothing, and return what would be done.

    Returns:
        The result; None if there is nothing to add.

    Raises:
        Exception: the errors of huggingface_hub and httpx2.
    """
    found = _find(api, org)
    there = [item for item, _ in _items(found)] if found else []
    wanted = [item for item in order if item in published or item in there]
    if not wanted:
        return None
    if there[: len(wanted)] == wanted:
        return Collected(found.slug if found else None, "unchanged", wanted)
    if dry_run:
        return Collected(found.slug if found else None, "to change" if found else "to create", wanted)
    changed = found or api.create_collection(
        TITLE, namespace=org, description=description(), private=private, exists_ok=True
    )
    for kind, repo_id in wanted:
        if (kind, repo_id) not in there:
            changed = api.add_collection_item(changed.slug, repo_id, kind, exists_ok=True)  # type: ignore[arg-type]
    _order(api, changed, wanted)
    return Collected(changed.slug, "changed" if found else "created", wanted)


def _find(api: HfApi, org: str) -> Collection | None:
    for one in api.list_collections(owner=org):
        if one.title == TITLE:
            return api.get_collection(one.slug)  # the list contains only some of its items
    return None


def _items(collection: Collection) -> list[tuple[Item, str]]:
    """The items and their ids in the collection, in order."""
    return [((item.item_type, item.item_id), item.item_object_id) for item in collection.items]


def _order(api: HfApi, collection: Collection, wanted: Sequence[Item]) -> None:
    there = _items(collection)
    for position, key in enumerate(wanted):
        if there[position][0] != key:
            moved = next(item for item in there if item[0] == key)
            api.update_collection_item(collection.slug, moved[1], position=position)
            there.remove(moved)
            there.insert(position, moved)
