"""``site.toml``: what the owner of a site allows. Everything else is refused and logged."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.core.errors import InputError, ParameterError, unknown_name
from discreet.core.files.texts import read_toml
from discreet.dp.budget import checked_epsilon
from discreet.dp.ledger import SUFFIX
from discreet.federated.messages import COORDINATOR, MAIN, MOST_BYTES

PROTOCOLS = {
    "vertical-likelihood": "the joint likelihood of columns of the same people",
    "shared-product": "means and covariances by secret shares",
    "secure-sum": "sums over sites; which ones is said by quantities",
    "mpyc-rank": "ranked values by MPyC, between processes of one machine",
}
QUANTITIES = (
    "likelihood", "totals", "products", "glm", "counts", "held-totals", "ranks", "scores", "noisy-counts",
)  # fmt: skip


@dataclass(frozen=True)
class Allowed:
    """What may be asked of a site.

    Attributes
    ----------
    analysts
        Names in the certificates of those who may ask.
    columns
        Columns that may be used.
    protocols, quantities
        What may be run, and what may be added by a secure sum.
    max_evaluations
        Messages that are answered in all and tell something, over all runs; kept over restarts.
    min_rows
        Nothing is computed from fewer rows.
    least_sites
        Sums are over this many sites at least. Of two sites, each learns the other's number from the sum.
    least_count
        Cells and totals are about this many records of the site at least, or about none.
    max_share
        One record makes up no larger share of a total of the site.
    dealers
        Who may draw the masks of shared products: sites, or the coordinator, where the owner trusts the analyst with
        it. Any site of the peers unless named.
    program_trusted
        Whether the program of the analysts is trusted to keep to the protocol of ``vertical-likelihood``. Sites cannot
        check the means that it sends for each row; a changed program learns a row from two evaluations. Refused unless
        named; ``shared-product`` with a third site gives the same fits and needs no such trust.
    other_site_sets
        Whether a column may be added over other sites than it was before.
    least_noise
        Least noise in standard deviations of a column.
    least_left
        Noise in standard deviations of a column that is left when all answers about it are averaged, over all runs.
    max_bytes, max_messages_per_minute
        Limits of one request, and of all.
    """

    analysts: tuple[str, ...]
    columns: tuple[str, ...]
    protocols: tuple[str, ...]
    quantities: tuple[str, ...] = ()
    max_evaluations: int = 1_000
    min_rows: int = 10
    least_noise: float = 100.0
    least_left: float = 3.0
    least_sites: int = 3
    least_count: int = 3
    max_share: float = 0.5
    dealers: tuple[str, ...] = ()
    program_trusted: bool = False
    other_site_sets: bool = False
    max_bytes: int = 256 << 20
    max_messages_per_minute: int = 60_000


@dataclass(frozen=True)
class SiteFile:
    """A site as its file describes it; paths are beside the file.

    ``data`` has one file for each group of rows, under the name of the group; ``budget`` is the epsilon of all answers
    with noise together, which ``ledger`` keeps.
    """

    name: str
    data: dict[str, Path]
    ids: str | None
    host: str
    port: int
    certificate: Path
    key: Path
    authority: Path
    seal: Path
    peers: dict[str, str]
    allowed: Allowed
    state: Path
    log: Path
    ledger: Path
    site_sets: Path
    budget: float | None = None
    reading: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | Path) -> SiteFile:
        """Read the file, refusing what it must not hold and what it lacks."""
        place = Path(path)
        given = read_toml(place, "site")
        known = {"name", "data", "ids", "listen", "tls", "seal", "peers", "allow", "state", "log", "reading",
                 "ledger"}  # fmt: skip
        for name in given:
            if name not in known:
                raise ParameterError(f"{place.name}: {unknown_name(name, sorted(known), what='setting')}")
        try:
            host, _, port = str(given.get("listen", "127.0.0.1:8443")).rpartition(":")
            tls = given["tls"]
            beside = place.parent
            name, ledger = str(given["name"]), dict(given.get("ledger", {}))
            files = given["data"] if isinstance(given["data"], dict) else {MAIN: given["data"]}
            site = cls(
                name=name, data={str(block): beside / file for block, file in files.items()}, ids=given.get("ids"),
                host=host or "127.0.0.1", port=int(port), certificate=beside / tls["certificate"],
                key=beside / tls["key"], authority=beside / tls["authority"], seal=beside / given["seal"],
                peers={str(peer): str(key) for peer, key in given.get("peers", {}).items()},
                allowed=_allowed(given["allow"], place.name),
                state=beside / given.get("state", f"{name}.state.json"),
                log=beside / given.get("log", f"{name}.log.jsonl"), budget=_budget(ledger, place.name),
                ledger=beside / ledger.get("file", f"{name}{SUFFIX}"),
                site_sets=(beside / ledger.get("file", "here")).parent / f"{name}.site-sets.json",
                reading=dict(given.get("reading", {})),
            )  # fmt: skip
        except KeyError as error:
            raise InputError(f"{place.name} lacks the setting {error}.") from error
        except (TypeError, ValueError, AttributeError) as error:
            if isinstance(error, ParameterError):
                raise
            raise InputError(f"{place.name} holds a setting of the wrong kind.") from error
        _check_peers(site, place.name)
        return site


def _check_peers(site: SiteFile, file: str) -> None:
    """Refuse a list of peers in which one party stands for several, or the analyst for a site."""
    for name in (site.name, *site.peers):
        if name == COORDINATOR:
            raise ParameterError(
                f"{file}: no site is called '{COORDINATOR}', which stands for the analyst. Give it another name."
            )
    if site.name in site.peers:
        raise ParameterError(f"{file}, [peers] names '{site.name}' itself. Enter the other sites only.")
    if len(set(site.peers.values())) != len(site.peers):
        raise ParameterError(
            f"{file}, [peers]: two sites have the same key, so that they are one. Enter it once."
        )
    for name in site.allowed.dealers:
        if name != COORDINATOR and name not in site.peers:
            known = [*site.peers, COORDINATOR]
            raise ParameterError(f"{file}, [allow]: {unknown_name(name, known, what='dealer')}")


def _budget(given: dict[str, Any], file: str) -> float | None:
    if not given:
        return None
    for name in given:
        if name not in ("epsilon", "file"):
            raise ParameterError(
                f"{file}, [ledger]: {unknown_name(name, ['epsilon', 'file'], what='setting')}"
            )
    if "epsilon" not in given:
        raise ParameterError(
            f"{file}, [ledger] must name epsilon: what all answers with noise may cost together."
        )
    checked_epsilon(given["epsilon"])
    return float(given["epsilon"])


def limit_of(name: str, text: str) -> Any:
    """Read a limit of an owner from text.

    Examples
    --------
    >>> limit_of("least_sites", "2"), limit_of("dealers", "coordinator"), limit_of("other_site_sets", "true")
    (2, ['coordinator'], True)
    """
    kinds: dict[str, str] = dict(Allowed.__annotations__)
    if name not in kinds:
        raise ParameterError(unknown_name(name, list(kinds), what="limit"))
    if kinds[name].startswith("tuple"):
        return text.split(",")
    try:
        return text == "true" if kinds[name] == "bool" else (int if kinds[name] == "int" else float)(text)
    except ValueError as error:
        raise ParameterError(f"The limit {name} must be a number.") from error


def _allowed(given: dict[str, Any], file: str) -> Allowed:
    kinds: dict[str, str] = dict(Allowed.__annotations__)
    made: dict[str, Any] = {}
    for name, value in given.items():
        if name not in kinds:
            raise ParameterError(f"{file}, [allow]: {unknown_name(name, list(kinds), what='setting')}")
        if kinds[name].startswith("tuple"):
            if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
                raise ParameterError(f"{file}, [allow]: {name} must be a list of texts.")
            made[name] = tuple(value)
        elif kinds[name] == "bool":
            if not isinstance(value, bool):
                raise ParameterError(f"{file}, [allow]: {name} must be true or false.")
            made[name] = value
        elif isinstance(value, bool) or not isinstance(value, int | float) or value < 0 or value > MOST_BYTES:
            raise ParameterError(f"{file}, [allow]: {name} must be a number of at least 0.")
        else:
            made[name] = float(value) if kinds[name] == "float" else int(value)
    for name in ("analysts", "columns", "protocols"):
        if name not in made:
            raise ParameterError(f"{file}, [allow] must name {name}: nothing is allowed that is not named.")
    for name in made["protocols"]:
        if name not in PROTOCOLS:
            raise ParameterError(f"{file}, [allow]: {unknown_name(name, list(PROTOCOLS), what='protocol')}")
    for name in made.get("quantities", ()):
        if name not in QUANTITIES:
            raise ParameterError(f"{file}, [allow]: {unknown_name(name, list(QUANTITIES), what='quantity')}")
    return Allowed(**made)
