"""The order in which a reader meets the measures: by the question behind them, not by their names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Chapter:
    """Measures that answer one plain question; those in ``leading`` are shown with their pictures at once."""

    slug: str
    question: str
    introduction: str
    measures: tuple[str, ...]
    leading: tuple[str, ...]


CHAPTERS = (
    Chapter(
        "margins",
        "Is each column still what it was?",
        "A column that is wrong by itself is wrong in every table and every model, so columns come first.",
        ("margins", "information_loss"),
        ("margins",),
    ),
    Chapter(
        "pairs",
        "Do columns still hang together?",
        "Two columns can each be right and yet have lost each other. Look for a column that is bad with all others: it "
        "went wrong by itself.",
        ("tabular", "dependence"),
        ("tabular", "dependence"),
    ),
    Chapter(
        "joint",
        "Can the files be told apart as a whole?",
        "A model tries to tell released records from real ones. The harder that is, the more the release says what the "
        "original says, also where no table of two columns looks.",
        ("pmse", "pmse_logit", "transport"),
        ("pmse",),
    ),
    Chapter(
        "specific",
        "Would analyses come to the same answers?",
        "A release is good or bad for something. These are the analyses that were named.",
        ("compare_model", "train_on_synthetic", "importance_shift", "gini_change"),
        ("compare_model", "train_on_synthetic"),
    ),
    Chapter(
        "found",
        "Can someone be found?",
        "Someone who knows the keys of a person looks for the record that fits. The fewer records fit, the surer "
        "the find.",
        (
            "k_anonymity",
            "uniqueness",
            "reidentification",
            "linkage",
            "outliers",
            "spatial_k",
            "near_copies",
            "neighbours",
            "new_rows",
            "replicated_uniques",
            "replicated_special_uniques",
            "differencing",
            "overlapping_tables",
        ),
        ("k_anonymity", "reidentification", "replicated_uniques", "near_copies", "neighbours", "linkage"),
    ),
    Chapter(
        "learned",
        "Can something be learned without finding them?",
        "A person need not be found to be harmed: where everyone who looks like them has the same value, the value "
        "is known.",
        (
            "l_diversity",
            "attribution",
            "t_closeness",
            "alpha_k",
            "beta_likeness",
            "delta_disclosure",
            "disclosure",
            "attribute_disclosure",
            "group_disclosure",
            "series",
        ),
        ("l_diversity", "attribution", "disclosure", "series"),
    ),
    Chapter(
        "population",
        "What about the population?",
        "The file may hold only some of the people it could be about. Whoever is alone in it need not be alone among "
        "all of them.",
        (
            "individual",
            "population",
            "known_population",
            "log_linear",
            "isolation",
            "k_map",
            "delta_presence",
        ),
        ("individual", "k_map"),
    ),
    Chapter(
        "keys",
        "Which keys drive it?",
        "Keys do not weigh the same. Those that stand on top are the ones to make coarser first.",
        ("key_contributions", "special_uniques", "unsafe_combinations"),
        ("key_contributions", "special_uniques"),
    ),
)

OTHER = Chapter(
    "other", "What else was found?", "Measures that fit under none of the questions above.", (), ()
)


def chapters_of(names: Iterable[str]) -> list[tuple[Chapter, tuple[str, ...]]]:
    """Sort measures into chapters, each in the order of its chapter; unknown ones come last.

    Examples
    --------
    >>> [(chapter.slug, names) for chapter, names in chapters_of(["new", "t_closeness", "l_diversity"])]
    [('learned', ('l_diversity', 't_closeness')), ('other', ('new',))]
    """
    given = list(dict.fromkeys(names))
    sorted_in = {name for chapter in CHAPTERS for name in chapter.measures}
    found = [(chapter, tuple(name for name in chapter.measures if name in given)) for chapter in CHAPTERS] + [
        (OTHER, tuple(name for name in given if name not in sorted_in))
    ]
    return [(chapter, held) for chapter, held in found if held]
