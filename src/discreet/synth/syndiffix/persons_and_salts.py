"""From a file with roles to a forest over it: which columns, whose records, under which salt."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Array, Floats
from discreet.core.errors import ColumnError, DiscreetWarning, InputError, ParameterError, unknown_name
from discreet.core.files.atomic import replacing
from discreet.core.files.inputs import note_read
from discreet.core.files.untrusted import parsed_json
from discreet.core.secret_keys import STICKS_TO_ONE_TABLE, ReleaseCount, digest_of, most_tables
from discreet.core.values import canonical_text
from discreet.microdata import Microdata, require_microdata
from discreet.synth.syndiffix.hashing import SHORTEST_SALT, hashed
from discreet.synth.syndiffix.range_coding import Coding, coded
from discreet.synth.syndiffix.range_forest import Anonymizing, Forest, Persons
from discreet.synth.whole_records import columns_of

if TYPE_CHECKING:
    from discreet.synth.syndiffix.syndiffix import SynDiffix


ONE_RUN = (
    "the salt was made from the seed of this run; name a salt file, so that every table has the same noise."
)
_RANKED_RECORDS, _RANKED_DEPTH, _FOLDS = 10_000, 8, 5
NOT_PRIVATE = (
    "SynDiffix rests on thresholds, noise that sticks and a secret salt, not on differential privacy; no epsilon can "
    f"be claimed for it. {STICKS_TO_ONE_TABLE}"
)


@dataclass(eq=False)
class Prepared:
    """A forest over a file, with what turns its numbers into columns again."""

    frame: pl.DataFrame
    names: list[str]
    codings: list[Coding]
    levels: list[pl.Series | None]
    forest: Forest
    left_out: dict[str, str]
    contents: dict[str, bytes]

    def table_of(self, columns: Sequence[int]) -> tuple[bytes, list[str]]:
        """The content and the columns of a table, by which it is known again."""
        names = sorted(self.names[column] for column in columns)
        return digest_of(*(self.contents[name] for name in names)), names


def count_of(options: SynDiffix) -> ReleaseCount | None:
    """Where tables of these people are counted; nowhere without a file, and not where there is no noise to average."""
    if options.count_file is None or not options.noise:
        return None
    limit = options.most_tables or most_tables(2 * options.layer_noise_sd**2)
    return ReleaseCount(options.count_file, limit)


def prepared(
    options: SynDiffix, data: Microdata, *, seed: int, columns: Sequence[str] | None = None
) -> Prepared:
    """Code the columns, find the persons, read the salt and open the forest; nothing is grown yet."""
    require_microdata(data)
    frame = engine.collect(data)
    person = _named(options.person) or ((data.roles.person,) if data.roles.person else ())
    names, left_out = _columns(options, data, frame, person, columns)
    if frame.height == 0:
        raise ParameterError("There are no records to synthesize from.")
    made = [coded(frame[name]) for name in names]
    values = [numbers for _, numbers, _ in made]
    salt = salt_of_file(options.salt) if options.salt is not None else salt_of_seed(seed)
    if options.salt is not None:
        found = {
            name: (numbers, [] if levels is None else levels.to_list())
            for name, (_, numbers, levels) in zip(names, made, strict=True)
        }
        bind(options.salt, fingerprints(salt, found), new_release=options.new_release)
    settings = Anonymizing(
        salt,
        low_threshold=options.low_threshold,
        low_mean_gap=options.low_mean_gap,
        suppress_sd=options.suppress_sd if options.noise else 0.0,
        layer_noise_sd=options.layer_noise_sd if options.noise else 0.0,
        outliers=_interval(options.outliers),
        top=_interval(options.top),
        singularity_low_threshold=options.singularity_low_threshold,
        range_low_threshold=options.range_low_threshold,
        precision_limit_depth=options.precision_limit_depth,
        precision_limit_row_fraction=options.precision_limit_row_fraction,
    )
    safe = set(_named(options.value_safe_columns))
    forest = Forest(values, names, _persons(frame, person), settings, safe=[name in safe for name in names])
    # Another salt is other noise, and so another table of the same people.
    contents = {
        name: digest_of(salt, name.encode(), numbers.tobytes())
        for name, numbers in zip(names, values, strict=True)
    }
    codings = [coding for coding, _, _ in made]
    return Prepared(frame, names, codings, [levels for _, _, levels in made], forest, left_out, contents)


def _named(names: str | Sequence[str] | None) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names or ())


def _interval(ends: Sequence[int]) -> tuple[int, int]:
    return int(ends[0]), int(ends[1])


def _columns(
    options: SynDiffix,
    data: Microdata,
    frame: pl.DataFrame,
    person: Sequence[str],
    columns: Sequence[str] | None,
) -> tuple[list[str], dict[str, str]]:
    asked = _named(columns if columns is not None else options.columns)
    for setting, named in (
        ("columns", asked),
        ("person", person),
        ("value_safe_columns", _named(options.value_safe_columns)),
        ("target", _named(options.target)),
    ):
        for name in named:
            if name not in data.schema:
                raise ColumnError(f"{unknown_name(name, data.columns)} It was named under {setting}.")
    both = [name for name in asked if name in person]
    if both:
        raise ColumnError(
            f"Column '{both[0]}' names persons and cannot be synthesized too. Leave it out of columns, or of person."
        )
    if asked:
        return list(dict.fromkeys(asked)), {}
    names, left_out = columns_of(data, list(person) or None, frame=frame)
    left_out |= dict.fromkeys(person, "it says whose record it is")
    names = [name for name in names if name not in person]
    if not names:
        raise ParameterError("There is no column to synthesize. Name some under columns.")
    return names, left_out


def _persons(frame: pl.DataFrame, person: Sequence[str]) -> Persons:
    if not person:
        return Persons.records(frame.height)
    numbers, hashes = [], []
    for name in person:
        if frame[name].dtype.is_nested():
            raise ColumnError(
                f"Column '{name}' names persons and holds lists or records, which cannot be told apart. Name a column "
                "of numbers or texts under person."
            )
        own = frame[name].rename("person")
        levels = own.drop_nulls().unique().sort()
        if not len(levels):
            raise ColumnError(f"Column '{name}' names persons and is missing in every record.")
        texts = canonical_text(levels.cast(pl.String) if levels.dtype == pl.Categorical else levels)
        hashes.append(np.array([hashed(f"{name}:{text}") for text in texts.to_list()], dtype=np.uint64))
        places = pl.DataFrame({"person": levels, "at": np.arange(len(levels), dtype=np.int64)})
        found = own.to_frame().join(places, on="person", how="left", maintain_order="left")["at"]
        numbers.append(found.fill_null(-1).to_numpy())
    wide = np.zeros((len(hashes), max(len(own) for own in hashes)), dtype=np.uint64)
    for place, own_hashes in enumerate(hashes):
        wide[place, : len(own_hashes)] = own_hashes
    return Persons(np.stack(numbers).astype(np.int64), wide)


def ranked_features(values: Sequence[Floats], target: int, *, classes: bool) -> tuple[list[int], int]:
    """Order the columns by what they say about the target, and say how many of them help to predict it.

    A tree is grown on some of the records, the least useful column goes, and so on; how well each of these sets of
    columns predicts is seen on the other records, in turn. The smallest set that is within a standard error of the
    best is what helps.
    """
    from sklearn.model_selection import KFold, StratifiedKFold
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    others = [place for place in range(len(values)) if place != target]
    rows = np.arange(0, len(values[target]), max(1, len(values[target]) // _RANKED_RECORDS))
    wanted: Array = values[target][rows]
    if classes:
        wanted = np.unique(wanted, return_inverse=True)[1]
    table = np.column_stack([values[place][rows] for place in others])
    kind = DecisionTreeClassifier if classes else DecisionTreeRegressor

    def eliminated(within: Array, beyond: Array | None) -> tuple[list[int], Floats]:
        left, gone = list(range(len(others))), []
        scores = np.zeros(len(others))
        while left:
            grown = kind(max_depth=_RANKED_DEPTH, random_state=0).fit(table[within][:, left], wanted[within])
            if beyond is not None:
                scores[len(left) - 1] = grown.score(table[beyond][:, left], wanted[beyond])
            gone.append(left.pop(int(np.argmin(grown.feature_importances_))))
        return gone[::-1], scores

    everybody = np.arange(len(rows))
    order, _ = eliminated(everybody, None)
    splits = (StratifiedKFold if classes else KFold)(_FOLDS, shuffle=True, random_state=0)
    scores = np.array([eliminated(*split)[1] for split in splits.split(table, wanted)])
    means, best = scores.mean(axis=0), int(np.argmax(scores.mean(axis=0)))
    enough = means[best] - scores[:, best].std(ddof=1) / np.sqrt(_FOLDS)
    return [others[place] for place in order], int(np.argmax(means >= enough)) + 1


# The secret that noise sticks to: read from a file, made where there is none, and bound to one data source.
#
# The noise of a range protects because nobody can repeat it and because it is always the same. If the data change under
# the same salt, the difference between two releases is no longer hidden by noise: the salt remembers, beside its file,
# a keyed fingerprint of every column it was used for, and is refused for others.


_FORMAT = "discreet salt 1"


def salt_of_file(path: str) -> bytes:
    """Read a salt; where there is no such file, make one that only its owner can read."""
    place = Path(path)
    if not place.exists():
        if not place.parent.is_dir():
            raise InputError(
                f"The folder of the salt file '{place.name}' is not there. Make it, or name another."
            )
        with replacing(place) as draft:
            draft.touch(mode=0o600)
            draft.write_text(secrets.token_hex(32), encoding="ascii")
            os.chmod(draft, 0o600)
        warnings.warn(
            f"A new salt was made and stored in '{place.name}'. Keep it secret and keep it: further tables of the same "
            "data need the same salt.",
            DiscreetWarning,
            stacklevel=4,
        )
    note_read(place)
    try:
        salt = place.read_bytes().strip()
    except OSError as error:
        raise InputError(f"The salt file '{place.name}' cannot be read.") from error
    if len(salt) < SHORTEST_SALT:
        raise ParameterError(
            f"The salt in '{place.name}' has {len(salt)} bytes and needs at least {SHORTEST_SALT}. Name a file that is "
            "not there yet, and a good one is made."
        )
    return salt


def salt_of_seed(seed: int) -> bytes:
    """Make a salt for one run: whoever knows the seed can repeat it."""
    return hashlib.sha256(f"discreet salt of seed {seed}".encode()).digest()


def fingerprints(salt: bytes, columns: Mapping[str, tuple[Floats, list[str]]]) -> dict[str, str]:
    """Return a keyed fingerprint of every column: its numbers, and the texts they stand for."""
    made = {}
    for name, (values, texts) in columns.items():
        digest = hmac.new(salt, name.encode(), "sha256")
        digest.update(values.tobytes())
        for text in texts:
            digest.update(f"{len(text)}:{text}".encode())
        made[hmac.new(salt, b"name" + name.encode(), "sha256").hexdigest()] = digest.hexdigest()
    return made


def bind(path: str, found: Mapping[str, str], *, new_release: bool) -> None:
    """Refuse a salt that was used for other data; remember the columns it is used for now."""
    place = Path(f"{path}.data")
    known: dict[str, str] = {}
    if place.exists() and not new_release:
        try:
            document = parsed_json(place.read_bytes())
            known = {str(name): str(value) for name, value in document["columns"].items()}
        except Exception as error:
            raise InputError(
                f"'{place.name}' says which data the salt belongs to and cannot be read. Put it back, or use a new one."
            ) from error
        changed = sum(known.get(name, value) != value for name, value in found.items())
        if changed:
            raise InputError(
                f"The data have changed since the salt '{Path(path).name}' was first used: {changed:,} of "
                f"{len(found):,} columns are not what they were. Noise that sticks does not hide a difference between "
                "two versions of a file: name a new salt file, or say new_release=True if the earlier tables are "
                "withdrawn."
            )
    if {**known, **found} != known:
        with replacing(place) as draft:
            draft.write_text(json.dumps({"format": _FORMAT, "columns": {**known, **found}}), encoding="utf-8")
