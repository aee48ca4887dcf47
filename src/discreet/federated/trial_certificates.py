"""Certificates, keys and site files to begin with: everything for a trial on one machine, made in one go.

In earnest every owner makes their own key (``discreet federated keys``), and an authority that all trust signs the
certificates. Nobody else's private key is ever needed.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from discreet.core.errors import ParameterError, load_extra
from discreet.federated.envelopes import new_keys, write_key
from discreet.federated.site_rules import Allowed


def prepare(
    folder: str | Path, sites: Mapping[str, str | Mapping[str, str]], *, columns: Mapping[str, Sequence[str]],
    port: int = 8441,
    ids: str | None = None, protocols: Sequence[str] = ("vertical-likelihood",), quantities: Sequence[str] = (),
    analyst: str = "analyst", days: int = 30, limits: Mapping[str, Any] | None = None, epsilon: float | None = None,
) -> Path:  # fmt: skip
    """Make an authority, certificates, keys, a file for each site and one for the model, for a trial on this machine.

    Parameters
    ----------
    folder
        Where everything goes.
    sites
        ``{site: data file}``, or ``{site: {group: data file}}`` where a site holds several groups of rows; data files
        as seen from the folder.
    columns
        ``{site: columns}`` that its owner allows.
    port
        The first port; each site gets the next one.
    ids
        Column by which rows are linked.
    protocols, quantities, limits
        What the owners allow. For ``vertical-likelihood`` the owners of a trial trust the program of the analyst
        (``program_trusted``), unless ``limits`` says otherwise; an owner of real data decides that.
    analyst
        The name of the analyst.
    days
        How long certificates hold.
    epsilon
        The budget of each site for answers with noise.

    Returns
    -------
    Path
        The folder.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    for name in limits or {}:
        if name not in Allowed.__annotations__:
            raise ParameterError(f"limits: a site file has no '{name}'.")
    trusted = {"program_trusted": True} if "vertical-likelihood" in protocols else {}
    authority = _Authority(days)
    (place / "authority.pem").write_bytes(authority.certificate)
    for name in (*sites, analyst):
        certificate, key = authority.issued(name)
        (place / f"{name}.pem").write_bytes(certificate)
        write_key(place / f"{name}.key", key.decode("ascii").strip(), overwrite=True)
    seals = {name: new_keys() for name in sites}
    for at, (name, data) in enumerate(sites.items()):
        write_key(place / f"{name}.seal", seals[name][0], overwrite=True)
        document: dict[str, Any] = {
            "name": name, "data": data if isinstance(data, str) else dict(data),
            "listen": f"127.0.0.1:{port + at}", "seal": f"{name}.seal",
            "tls": {"certificate": f"{name}.pem", "key": f"{name}.key", "authority": "authority.pem"},
            "peers": {other: seals[other][1] for other in sites if other != name},
            "allow": {"analysts": [analyst], "columns": list(columns[name]), "protocols": list(protocols),
                      "quantities": list(quantities), **trusted, **dict(limits or {})},
        }  # fmt: skip
        if ids is not None:
            document["ids"] = ids
        if epsilon is not None:
            document["ledger"] = {"epsilon": epsilon}
        (place / f"{name}.toml").write_text(tomli_w.dumps(document), encoding="utf-8")
    model = _model(sites, columns, port, analyst)
    if "vertical-likelihood" in protocols and model is not None:
        (place / "model.toml").write_text(tomli_w.dumps(model), encoding="utf-8")
    return place


def _model(sites: Mapping[str, Any], columns: Mapping[str, Sequence[str]], port: int, analyst: str) -> Any:
    """Write a model to begin with, where every site has other columns of the same people."""
    named = [name for own in columns.values() for name in own]
    if (
        len(set(named)) != len(named)
        or len(sites) < 2
        or not all(isinstance(file, str) for file in sites.values())
    ):
        return None
    return {
        "analyst": {"certificate": f"{analyst}.pem", "key": f"{analyst}.key", "authority": "authority.pem"},
        "sites": {name: f"https://127.0.0.1:{port + at}" for at, name in enumerate(sites)},
        "layout": {"kind": "vertical", "columns": {name: list(columns[name]) for name in sites}},
        "model": {"kind": "saturated"},
        "fit": {"evaluations": "fit.jsonl"},
    }


class _Authority:
    """Somebody who vouches for sites and analysts, for a trial."""

    def __init__(self, days: int) -> None:
        load_extra("cryptography.x509", extra="federated", purpose="Making certificates")
        self.days = days
        self.key = _new_key()
        self.name = "discreet trial authority"
        self.certificate = _pem(
            _signed(self.name, self.key.public_key(), self.name, self.key, days, authority=True)
        )

    def issued(self, name: str) -> tuple[bytes, bytes]:
        key = _new_key()
        certificate = _signed(name, key.public_key(), self.name, self.key, self.days, authority=False)
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return _pem(certificate), bytes(private)


def _new_key() -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _signed(subject: str, public: Any, issuer: str, key: Any, days: int, *, authority: bool) -> Any:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import NameOID

    def named(text: str) -> Any:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    now = datetime.datetime.now(datetime.UTC)
    begins = now - datetime.timedelta(days=max(1, -days + 2))
    made = (
        x509.CertificateBuilder().subject_name(named(subject)).issuer_name(named(issuer)).public_key(public)
        .serial_number(x509.random_serial_number()).not_valid_before(begins)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )  # fmt: skip
    if authority:
        made = made.add_extension(
            x509.KeyUsage(
                digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
                key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
            ),
            critical=True,
        )  # fmt: skip
        made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    else:
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
        made = made.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
        )
    return made.sign(key, hashes.SHA256())


def _pem(certificate: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return bytes(certificate.public_bytes(Encoding.PEM))
