"""What protocols say about what is read beside reports: which items were rated, and public data."""

from dprec.catalogue import Catalogue
from dprec.observations import EmbeddingRelease


def note_on_reading(*, on_device: bool, sends_values: bool) -> str:
    """Say that the predictions rest on the set of rated items, and where nothing of this holds."""
    who = "Devices predict" if on_device else "The server predicts"
    sources = ["what is reported"] * sends_values + ["which items were rated"]
    sources += ["their own ratings"] * on_device
    *others, last = sources
    read = f"{', '.join(others)} and {last}" if others else last
    alone = "The set alone, without a report of any value, gives what the baseline sets-only reaches. "
    return (
        f"{who} from {read}. {alone if sends_values else ''}"
        "Where the set of rated items is hidden, none of that gain holds."
    )


def notes_on_table(
    embedding_release: EmbeddingRelease, *, has_biases: bool, groups_items: bool
) -> tuple[str, ...]:
    """Say what the table of items tells all users of everybody's item sets."""
    least = embedding_release.least_raters
    groups = "Which items are rated about as often is told everybody without noise. " * groups_items
    if embedding_release.epsilon is None:
        from_least = f" if it has at least {least} raters" * (least > 1)
        return (
            "All users are sent a table that is computed from everybody's item sets, without noise: how "
            f"often an item is rated, and its place among items that the same people rate{from_least}. "
            f"{groups}From it others can guess what else a rater of a rare item rated. No epsilon "
            "covers that unless item_embeddings.epsilon is set.",
        )
    rest = (
        "The items' effects and how certain these are have none of that noise, and it does not cover them: "
        "they follow from the reports, and show about how often an item is rated."
        if has_biases
        else "Nothing else in the table depends on who rated what."
    )
    return (
        "All users are sent a table with noise on how often items are rated, and by the same people: "
        f"epsilon = {embedding_release.epsilon:g} with delta = {embedding_release.delta:g} holds against all "
        "of them together, for an item set or none "
        f"({embedding_release.epsilon_between_profiles:.4g} between any two), "
        "and is part of epsilon_per_user. The server, which sees the item sets as they are, adds the noise. "
        f"An item whose noisy count is below {least}, or within the noise, has no place. {groups}{rest}",
    )


def notes_on_catalogue(catalogue: Catalogue | None) -> tuple[str, ...]:
    """Say which public data about the items the predictions rest on, if on any."""
    if catalogue is None:
        return ()
    held = [*catalogue.number_names]
    if catalogue.category_names:
        held.append(f"{len(catalogue.category_names)} categories")
    return (f"Predictions also rest on public data about the items: {', '.join(held)}.",)
