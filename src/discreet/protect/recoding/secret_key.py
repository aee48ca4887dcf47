"""Where a secret key comes from: the environment or a file of its own, never a plan file."""

from __future__ import annotations

import os
from pathlib import Path

from discreet.errors import InputError, ParameterError

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
