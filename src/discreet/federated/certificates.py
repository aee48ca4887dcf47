"""Is a certificate still good? Asked before it is shown to anybody, because a handshake that fails does not say why."""

from __future__ import annotations

import datetime
from pathlib import Path

from discreet.core.errors import InputError, load_extra


def refuse_old(path: Path, whose: str) -> None:
    """Refuse a certificate that is out of date, or not yet good."""
    x509 = load_extra("cryptography.x509", extra="federated", purpose="Reading certificates")

    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"The certificate of {whose} cannot be read.") from error
    now = datetime.datetime.now(datetime.UTC)
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        raise InputError(
            f"The certificate of {whose} holds from {certificate.not_valid_before_utc:%Y-%m-%d} to "
            f"{certificate.not_valid_after_utc:%Y-%m-%d}, and not today. Get a new one from the authority."
        )
