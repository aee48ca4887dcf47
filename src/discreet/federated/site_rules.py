"""``site.toml``: what the owner of a site allows. Everything else is refused and logged.

Beside the file stand the limits on what may go out, and the list of the sites with which data were added up so far.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from discreet.core.arrays import Array, Floats
from discreet.core.errors import InputError, ParameterError, need_known
from discreet.core.files.atomic import replacing
from discreet.core.files.untrusted import read_toml
from discreet.dp.calibration import checked_epsilon
from discreet.dp.ledger import SUFFIX
from discreet.federated.messages import ALONE, COORDINATOR, MAIN, MOST_BYTES, ProtocolError
from discreet.federated.parties import Holder

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
        need_known(given, sorted(known), what="setting", before=f"{place.name}: ", kind=ParameterError)
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
    dealers = [*site.peers, COORDINATOR]
    _need_known(f"{file}, [allow]", site.allowed.dealers, dealers, "dealer")


def _need_known(where: str, names: Iterable[str], known: Iterable[str], what: str) -> None:
    need_known(names, known, what=what, before=f"{where}: ", kind=ParameterError)


def _budget(given: dict[str, Any], file: str) -> float | None:
    if not given:
        return None
    _need_known(f"{file}, [ledger]", given, ["epsilon", "file"], "setting")
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
    need_known([name], kinds, what="limit", kind=ParameterError)
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
        _need_known(f"{file}, [allow]", [name], kinds, "setting")
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
    _need_known(f"{file}, [allow]", made["protocols"], PROTOCOLS, "protocol")
    _need_known(f"{file}, [allow]", made.get("quantities", ()), QUANTITIES, "quantity")
    return Allowed(**made)


# What may go out of a site: no cell of few records, and no total that is mostly one record's.
#
# A site sees its own part of a joint number, and not the others'. It holds its own part against the limits: where every
# part is large enough, the sum is. A quantity that would break them is refused, and not changed in silence.


_NOTHING = 1e-6  # a record that weighs less than this share of the heaviest one does not hide it

_AT_A_TIME = 4_000_000  # products that are looked at together


class OwnerLimits:
    """The least count of a cell, and the largest share of a total that one record may have.

    Examples
    --------
    >>> limits = OwnerLimits("clinic", least_count=3, max_share=0.5)
    >>> limits.cells(np.array([0, 3, 40]))
    >>> limits.cells(np.array([0, 2, 40]))
    Traceback (most recent call last):
    discreet.federated.messages.ProtocolError: A cell holds fewer than 3 records of 'clinic'. Ask for ...
    """

    def __init__(self, name: str, *, least_count: int, max_share: float) -> None:
        if not 0 < max_share <= 1:
            raise ParameterError("max_share must be a share above 0 and at most 1.")
        self.name, self.least_count, self.max_share = name, least_count, max_share
        self._fine: set[tuple[str, tuple[str, ...]]] = set()

    def cells(self, counts: Array) -> None:
        """Refuse a table with a cell of few records; empty cells are allowed."""
        if ((counts > 0) & (counts < self.least_count)).any():
            raise ProtocolError(
                f"A cell holds fewer than {self.least_count} records of '{self.name}'. Ask for coarser levels, leave "
                "a column out, or ask for counts with noise (noisy-counts). The owner sets least_count."
            )

    def totals(self, parts: Floats) -> None:
        """Refuse totals, one a column, that few records make up, or one record for the most part."""
        sizes = np.abs(parts)
        largest = sizes.max(axis=0, initial=0.0)
        many = (sizes > _NOTHING * largest).sum(axis=0)
        if ((many > 0) & (many < self.least_count)).any():
            raise ProtocolError(
                f"A total is about fewer than {self.least_count} records of '{self.name}'. Leave out the column that "
                "few records have, or put categories together. The owner sets least_count."
            )
        if (largest > self.max_share * sizes.sum(axis=0) * (1 + 1e-12)).any():
            raise ProtocolError(
                f"One record makes up more than {self.max_share:.0%} of a total of '{self.name}'. Leave the column "
                "out, or cap its values at the site. The owner sets max_share."
            )

    def products(self, parts: Floats, weights: Floats | None = None) -> None:
        """Refuse products of columns, weighted where weights are given, that few records make up; some at a time."""
        step = max(1, _AT_A_TIME // max(len(parts), 1))
        for at in range(parts.shape[1]):
            one = parts[:, [at]] if weights is None else parts[:, [at]] * weights[:, None]
            for start in range(at, parts.shape[1], step):
                self.totals(one * parts[:, start : start + step])

    def moments(self, holder: Any, block: str, columns: tuple[str, ...]) -> None:
        """Refuse means and products of columns where one of the totals behind them breaks the limits; found once."""
        key = (block, columns)
        if key in self._fine:
            return
        rows = holder.matrix(columns, block)
        parts = np.concatenate([_parts(rows[:, at]) for at in range(rows.shape[1])], axis=1)
        self.totals(parts)
        self.products(parts)
        self._fine.add(key)


def _parts(values: Floats) -> Floats:
    """Return what each record contributes to totals of a column, however it is coded.

    A column of two values stands for both groups, and a column that is mostly one value for those that differ from it.
    """
    found, counts = np.unique(values, return_counts=True)
    if len(found) == 1:
        return np.ones((len(values), 1))
    if len(found) == 2:
        return np.stack([values == found[0], values == found[1]], axis=1).astype(np.float64)
    most = int(counts.argmax())
    usual = found[most] if 2 * counts[most] > len(values) else 0.0
    return (values - usual)[:, None]


# With which other sites were a site's data added up so far? Sums over different sites give one of them away.
#
# The sums over {A, B}, {B, C} and {A, C} give B exactly. So a site adds each of its columns over one set of sites,
# whatever is computed from it and whatever it is called, in this run and in every later one. A column is known by its
# name and by what it holds. The list is kept beside the owner's ledger.


Uses = Sequence[tuple[str, tuple[str, ...]]]


class SiteSets:
    """The list of one site.

    Parameters
    ----------
    path
        The file.
    key
        The site's own key: what a column holds is kept as a keyed digest, so that nobody can try out values.
    free
        Whether the owner lets the same column be added over other sites as well.
    """

    def __init__(self, path: Path, key: bytes, *, free: bool = False) -> None:
        self.path, self._key, self._free = path, key, free
        self._known: dict[str, list[str]] = {}
        self._digests: dict[tuple[str, str], str] = {}
        if path.exists():
            try:
                known = json.loads(path.read_text(encoding="utf-8"))["columns"]
                self._known = {str(name): [str(site) for site in sites] for name, sites in known.items()}
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                raise InputError(
                    f"'{path.name}' cannot be read: without it the site does not know with whom its data were added."
                ) from error

    def check(self, holder: Holder, uses: Uses, sites: Sequence[str]) -> None:
        """Refuse columns that were released over other sites before."""
        wanted = sorted(sites)
        for name, key in self._keys(holder, uses):
            known = self._known.get(key, wanted)
            if known != wanted and not self._free:
                raise ProtocolError(
                    f"'{holder.name}' has released '{name}' over {_said(known)} before, and does not release it over "
                    f"{_said(wanted)}: two sums over different sites give one of them away by subtraction. Ask the "
                    "same sites; the owner may allow others (other_site_sets)."
                )

    def enter(self, holder: Holder, uses: Uses, sites: Sequence[str]) -> None:
        """Enter over which sites columns are released, before the answer goes out."""
        new = {key: sorted(sites) for _, key in self._keys(holder, uses) if key not in self._known}
        if new:
            self._known.update(new)
            self._write()

    def _keys(self, holder: Holder, uses: Uses) -> list[tuple[str, str]]:
        return [
            (name, key)
            for block, columns in uses
            for name in columns
            for key in (f"name {block}/{name}", f"rows {self._digest(holder, block, name)}")
        ]

    def _digest(self, holder: Holder, block: str, name: str) -> str:
        if (block, name) not in self._digests:
            told = hmac.new(self._key, digestmod=hashlib.sha256)
            values = holder.frame(block)[name].cast(str).to_list()
            people: Sequence[Any] = holder.row_ids(block) or holder.row_texts(block)
            for line in sorted(f"{who}\x1f{value}" for who, value in zip(people, values, strict=True)):
                told.update(line.encode() + b"\x1e")
            self._digests[block, name] = told.hexdigest()[:32]
        return self._digests[block, name]

    def _write(self) -> None:
        try:
            with replacing(self.path) as unfinished:
                unfinished.write_text(json.dumps({"columns": self._known}, indent=1), encoding="utf-8")
        except OSError as error:
            raise InputError(
                "The site cannot keep the list of sites with whom its data were added, and answers nothing without it."
            ) from error


def _said(sites: Sequence[str]) -> str:
    if tuple(sites) == (ALONE,):
        return ALONE
    return "the sites " + ", ".join(f"'{site}'" for site in sites)
