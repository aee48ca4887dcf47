"""Draws that only the holder of a secret key can repeat: where the key comes from, and numbers made with it.

The same text under the same key gives the same number, in whatever table or release it stands, so that repeating a
release cannot average the noise away.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import InputError, ParameterError
from discreet.core.files.inputs import note_read
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
