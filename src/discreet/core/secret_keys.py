"""Noise that belongs to a secret key: where the key comes from, numbers made with it, and how many tables had noise.

The same text under the same key gives the same number, in whatever table or release it stands, so that repeating a
release cannot average the noise away. For every other table the noise is drawn anew: whoever adds up tables with one
more column each gets the same counts again with other noise, and their mean comes to the truth. A `ReleaseCount` is a
file that remembers which tables went out, and refuses one too many.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import InputError, ParameterError
from discreet.core.files.atomic import replacing
from discreet.core.files.inputs import note_read
from discreet.core.files.untrusted import parsed_json
from discreet.core.values import canonical_text

SHORTEST_KEY = 16
DEFAULT_VARIABLE = "DISCREET_KEY"


def secret_key(treatment: str, *, variable: str = DEFAULT_VARIABLE, file: str | None = None) -> bytes:
    """Read the secret key of a treatment.

    Parameters
    ----------
    treatment
        The treatment that asks for it, for the message.
    variable
        Environment variable that holds the key.
    file
        File that holds the key; goes before the environment.

    Examples
    --------
    >>> os.environ["DISCREET_KEY"] = "a secret of at least sixteen bytes"
    >>> len(secret_key("pseudonymize"))
    34
    """
    if file is not None:
        note_read(file)
        try:
            key = Path(file).read_bytes().strip()
        except OSError as error:
            raise InputError(f"The key file '{Path(file).name}' cannot be read.") from error
    else:
        key = os.environ.get(variable, "").encode()
    if len(key) < SHORTEST_KEY:
        raise ParameterError(
            f"{treatment} needs a secret key of at least {SHORTEST_KEY} bytes. Put it into the environment "
            f"variable {variable}, or into a file named by key_file; never into a plan file."
        )
    return key


def keyed_uniforms(texts: pl.Series, key: bytes) -> Floats:
    """Draw a uniform number in [0, 1) for each text: the same text and key always give the same number.

    Examples
    --------
    >>> one, same, other = keyed_uniforms(pl.Series(["a", "a", "b"]), b"a secret of at least sixteen bytes")
    >>> bool(one == same), bool(one == other)
    (True, False)
    """
    distinct = texts.unique(maintain_order=True)
    digests = b"".join(hmac.digest(key, text.encode(), "sha256")[:8] for text in distinct)
    drawn = (np.frombuffer(digests, dtype=">u8") >> np.uint64(11)).astype(np.float64) * 2.0**-53
    at = pl.DataFrame({"text": texts}).join(
        pl.DataFrame({"text": distinct, "drawn": drawn}), on="text", how="left", maintain_order="left"
    )
    return at["drawn"].to_numpy()


def keyed_numbers(texts: pl.Series, key: bytes, purpose: bytes, words: int) -> Integers:
    """For every text so many numbers below 2^32, from the secret key and the purpose: one row a text."""
    distinct = texts.unique(maintain_order=True)
    digests = b"".join(hmac.digest(key, purpose + text.encode(), "sha256")[: 4 * words] for text in distinct)
    drawn = np.frombuffer(digests, dtype=">u4").astype(np.int64).reshape(-1, words)
    if len(distinct) == len(texts):
        return drawn
    place = texts.replace_strict(distinct, pl.Series(np.arange(len(distinct))), return_dtype=pl.Int64)
    return np.asarray(drawn[place.to_numpy()])


def definitions(
    table: pl.DataFrame, cell: Sequence[str], run: Sequence[str] = (), *, subset: str = "", measure: str = ""
) -> pl.Series:
    """Write down what each count is about in a text that does not depend on the table it stands in.

    The subset and what is counted come first, then the pairs (variable, category) in the order of the names of the
    variables, then the run, by its value alone; lengths stand before names and values, so that no two definitions read
    alike.

    Examples
    --------
    >>> two = pl.DataFrame({"sex": ["f"], "age": [30]})
    >>> definitions(two, ["sex", "age"]).to_list() == definitions(two, ["age", "sex"]).to_list()
    True
    """
    head = f"{len(subset)}:{subset}{len(measure)}:{measure}"
    parts = [pl.lit(head)]
    for kind, names in (("v", sorted(cell)), ("r", list(run))):
        for name in names:
            values = table[name]
            text = canonical_text(values.cast(pl.String) if values.dtype == pl.Categorical else values)
            known = pl.lit(text)
            parts += [
                pl.lit(f"{kind}{len(name)}:{name}" if kind == "v" else kind),
                known.str.len_bytes().cast(pl.String).fill_null("-"),
                pl.lit(":"),
                known.fill_null(""),
            ]
    return (
        table.select(pl.concat_str(parts).alias("definition")).to_series()
        if table.height
        else pl.Series("definition", [], dtype=pl.String)
    )


# The count of tables that went out


_FORMAT = "discreet count of releases 1"
_PATIENCE = 10.0  # seconds that a count is waited for while another program enters a table
OTHER_TABLES_DIFFER = (
    "The noise belongs to one table: another table of the same people (one more column, a filter, another level) has "
    "other noise, and the mean of many such tables comes to the true counts. Publish few tables of the same people."
)
STICKS_TO_ONE_TABLE = (
    f"{OTHER_TABLES_DIFFER} To have them counted and limited, name count_file= (--set count_file=FILE)."
)
"""What is said where a table could be counted and is not."""


def most_tables(variance: float) -> int:
    """After how many tables the mean of their noise has a standard error of half a person.

    Examples
    --------
    >>> most_tables(3.0), most_tables(0.1)
    (12, 1)
    """
    return max(int(4 * variance), 1)


class ReleaseCount:
    """The tables that went out about the people of one data source, in a file.

    Everything that is entered into one file counts as being about the same people: keep one file for each source,
    beside the data and as confidential. The same table again has the same noise and is not counted anew.

    Parameters
    ----------
    path
        The file; made where it is not there.
    limit
        In how many different tables a column may be.

    Examples
    --------
    >>> import tempfile
    >>> count = ReleaseCount(Path(tempfile.mkdtemp()) / "people.releases.json", limit=2)
    >>> [count.enter([(b"one", ["age"])]), count.enter([(b"two", ["age", "sex"])]), count.enter([(b"one", ["age"])])]
    [1, 2, 2]
    >>> count.enter([(b"three", ["age", "job"])])
    Traceback (most recent call last):
    discreet.core.errors.ParameterError: 'age' would be in 3 different tables of the same people, and 2 are allowed: ...
    """

    def __init__(self, path: str | Path, limit: int) -> None:
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise ParameterError("The limit of tables must be a whole number of 1 or more.")
        self.path, self.limit = Path(path), limit

    def enter(self, tables: Sequence[tuple[bytes, Sequence[str]]]) -> int:
        """Enter tables, each by its content and its columns, all or none; say in how many a column of them is."""
        with self._alone():
            salt, known = self._read()
            fresh = dict(known)
            for content, columns in tables:
                fresh[_keyed(salt, content)] = sorted(_keyed(salt, name.encode()) for name in columns)
            most = 0
            for name in dict.fromkeys(name for _, columns in tables for name in columns):
                own = _keyed(salt, name.encode())
                found = sum(own in columns for columns in fresh.values())
                if found > self.limit and len(fresh) > len(known):
                    raise ParameterError(
                        f"'{name}' would be in {found:,} different tables of the same people, and {self.limit:,} are "
                        "allowed: the mean of so many draws of noise comes to the true counts. Answer from a table "
                        "that is out already, or raise most_tables if you accept that."
                    )
                most = max(most, found)
            if fresh != known:
                with replacing(self.path) as draft:
                    document = {"format": _FORMAT, "salt": salt.hex(), "tables": fresh}
                    draft.write_text(json.dumps(document), encoding="utf-8")
        return most

    def said(self, tables: Sequence[tuple[bytes, Sequence[str]]]) -> str:
        """Enter tables, and say so in a sentence for whoever reads the result."""
        return (
            f"A column of it is now in {self.enter(tables):,} of at most {self.limit:,} different tables of these "
            f"people ('{self.path.name}' counts them): the mean of more draws of noise would come to the true counts."
        )

    def _read(self) -> tuple[bytes, dict[str, list[str]]]:
        if not self.path.exists():
            return secrets.token_bytes(32), {}
        try:
            document = parsed_json(self.path.read_bytes())
            if document["format"] != _FORMAT:
                raise ValueError("another format")
            known = {str(key): [str(name) for name in own] for key, own in document["tables"].items()}
            return bytes.fromhex(document["salt"]), known
        except Exception as error:
            raise InputError(
                f"'{self.path.name}' counts the tables that went out and cannot be read. Put it back from a copy; "
                "until then nobody knows how many there were."
            ) from error

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Let one program at a time enter a table, on every system."""
        lock = self.path.with_name(f"{self.path.name}.lock")
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                break
            except FileExistsError as error:
                if time.monotonic() > until:
                    raise InputError(
                        f"Another program is entering a table into '{self.path.name}'. If none is, delete "
                        f"'{lock.name}'."
                    ) from error
                time.sleep(0.02)
            except OSError as error:
                raise InputError(
                    f"The count of tables '{self.path.name}' cannot be written: its folder is missing or closed."
                ) from error
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def digest_of(*parts: bytes) -> bytes:
    """Digest what a table is made of, so that the same table is known again."""
    made = hashlib.sha256()
    for part in parts:
        made.update(len(part).to_bytes(8, "big") + part)
    return made.digest()


def _keyed(salt: bytes, text: bytes) -> str:
    return hmac.new(salt, text, "sha256").hexdigest()
