"""What a table of a finished file is made of: header, labels, numbers, what names say, and what is suppressed."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from discreet.core.arrays import Flags, Floats
from discreet.outputs.check_results import Place
from discreet.outputs.finished_grids import Grid

HIDDEN = re.compile(
    r"^\s*([*x.:…–—-]{1,3}|#+|c|s|nd|n\.?[dk]\.?|supp(ressed)?|\(?[<≤]\s*\d+\)?|confidential|masked|redacted|\(x\)|\[c\])\s*$",
    re.IGNORECASE,
)
_COUNT_AND_SHARE = re.compile(r"^\s*(\d[\d,.  ]*)\s*[(\[/|]\s*[\d.,]+\s*%?\s*[)\]]?\s*$")
_NUMBER = re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$", re.IGNORECASE)
_MOST_HEADERS = 3
_MOST_LEVELS = 60
_LABEL_WORDS = {
    "year", "jahr", "annee", "ano", "anno", "age", "alter", "edad", "code", "wave", "month", "quarter", "week", "day",
    "date", "period", "from", "to", "von", "bis", "bin", "bins", "class", "level", "group", "decile", "quintile",
    "quartile", "zip", "postcode", "plz", "nuts", "isco", "nace", "hour", "time", "step", "node", "rank", "iteration",
    "index", "category", "cohort", "round", "x", "grade", "size", "row", "lfdnr",
}  # fmt: skip


@dataclass(frozen=True)
class Sheet:
    """A table with its header taken off.

    Attributes
    ----------
    names
        Names of the columns, from one header row or several.
    texts
        The body, row by row.
    numbers
        The numbers in it; missing where there is none.
    hidden
        The cells that are suppressed: blank among numbers, or a sign.
    counts_first
        The cells of the form ``12 (4.5%)``: a count with its share.
    """

    grid: Grid
    names: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    first: int

    @cached_property
    def _parsed(self) -> tuple[Floats, Flags, Flags]:
        shape = (len(self.texts), len(self.names))
        numbers, signs, pairs = np.full(shape, np.nan), np.zeros(shape, bool), np.zeros(shape, bool)
        for i, row in enumerate(self.texts):
            for j, text in enumerate(row):
                numbers[i, j], signs[i, j], pairs[i, j] = _read_cell(text, self.grid.decimal_comma)
        # A blank is a suppressed number only in a column that has numbers.
        some = np.isfinite(numbers).any(axis=0)
        return numbers, signs & some[None, :], pairs

    @property
    def numbers(self) -> Floats:
        """The numbers; missing where a cell has none."""
        return self._parsed[0]

    @property
    def hidden(self) -> Flags:
        """The suppressed cells."""
        return self._parsed[1]

    @property
    def count_pairs(self) -> Flags:
        """The cells that hold a count and its share in brackets."""
        return self._parsed[2]

    @cached_property
    def column_roles(self) -> tuple[Role, ...]:
        """What the name of every column says."""
        return tuple(role_of(name) for name in self.names)

    @cached_property
    def is_text(self) -> Flags:
        """The columns that hold words and no numbers."""
        known = np.isfinite(self.numbers).sum(axis=0)
        filled = np.array([sum(bool(row[j]) for row in self.texts) for j in range(len(self.names))])
        found = np.asarray((known == 0) | (known * 2 < filled - self.hidden.sum(axis=0)))
        # The first column may name rows "count", "5%", "95%": one word makes it a column of labels.
        words = ~np.isfinite(self.numbers[:, 0]) & ~self.hidden[:, 0]
        found[0] |= bool(words.any())
        return found

    @cached_property
    def is_index(self) -> Flags:
        """The columns that only number the rows: 0, 1, 2, … without a name."""
        rows = len(self.texts)
        found = np.zeros(len(self.names), dtype=bool)
        for j, name in enumerate(self.names[:2]):
            plain = " ".join(words_of(name))
            known = self.numbers[:, j]
            steps = rows > 1 and bool(np.isfinite(known).all()) and bool((np.diff(known) == 1).all())
            found[j] = (
                steps
                and known[0] in (0, 1)
                and plain in ("", "index", "row", "unnamed 0", "lfdnr", "rownames")
            )
        return found

    @cached_property
    def is_label(self) -> Flags:
        """The columns that say which cell a row is: words, years, ages, codes, the ends of bins."""
        found = self.is_text.copy()
        # Rows named after statistics hold numbers of all columns; none of these is a label.
        if 2 * sum(bool(role) for role in self.row_roles) > len(self.texts):
            return found
        for j, name in enumerate(self.names):
            if found[j] or self.is_index[j]:
                continue
            known = self.numbers[np.isfinite(self.numbers[:, j]), j]
            years = len(known) > 0 and bool(
                ((known >= 1800) & (known <= 2100) & (known == np.round(known))).all()
            )
            named = bool(set(words_of(name)) & _LABEL_WORDS) and self.column_roles[j] in ("", "statistic")
            ordered = len(known) > 1 and bool((np.diff(known) >= 0).all() or (np.diff(known) <= 0).all())
            levels = len(np.unique(known))
            named &= ordered or (levels <= _MOST_LEVELS and levels < len(known))
            found[j] = len(known) == len(self.texts) and (named or (years and self.column_roles[j] == ""))
        numbers = np.isfinite(self.numbers).any(axis=0) & ~self.is_index
        # Something must be left to be labelled.
        return found if (numbers & ~found).any() else self.is_text.copy()

    @cached_property
    def row_roles(self) -> tuple[Role, ...]:
        """What the labels of every row say of its numbers; empty where they only name a group."""
        places = np.flatnonzero(self.is_text)
        return tuple(next((role for j in places if (role := _row_role(row[j]))), "") for row in self.texts)

    @cached_property
    def is_total_row(self) -> Flags:
        """The rows that are totals."""
        places = np.flatnonzero(self.is_text)
        return np.array([any(is_total(row[j]) for j in places) for row in self.texts], dtype=bool)

    def place(self, row: int, column: int, *, show_values: bool = False) -> Place:
        """Say where a cell of the body stands in the file."""
        return Place(
            self.grid.first_row + self.first + row,
            self.grid.first_column + column,
            self.names[column],
            self.grid.sheet,
            self.texts[row][column] if show_values else None,
        )


def sheet_of(grid: Grid) -> Sheet | None:
    """Take the header off a table; None where nothing is left.

    Examples
    --------
    >>> sheet = sheet_of(Grid((("", "women", ""), ("region", "n", "mean"), ("north", "40", "3.5"))))
    >>> sheet.names, sheet.numbers.tolist()
    (('region', 'women n', 'women mean'), [[nan, 40.0, 3.5]])
    """
    rows = grid.rows
    heads = 1
    while heads < min(_MOST_HEADERS, len(rows) - 1) and not _has_numbers(rows[heads]):
        heads += 1
    if heads == len(rows) - 1 and heads > 1 and not _has_numbers(rows[heads]):
        heads = 1
    # Words below the first line may be the names of a second header, or a table of words.
    if heads > 1 and not any(_has_numbers(row) for row in rows[heads:]):
        heads = 1
    if len(rows) <= heads:
        return None
    names = []
    above = [_filled(row) if place < heads - 1 else list(row) for place, row in enumerate(rows[:heads])]
    for j in range(grid.width):
        parts = [row[j] for row in above if row[j]]
        names.append(" ".join(dict.fromkeys(parts)))
    return Sheet(grid, tuple(names), rows[heads:], heads)


def _row_role(label: str) -> Role:
    """What a label says of its row; a letter alone is a group ("f", "m"), unless it is the n of a table."""
    bare = label.strip().lower()
    if is_total(label) or (len(bare) == 1 and bare != "n"):
        return ""
    return role_of(label)


def _has_numbers(row: Any) -> bool:
    return any(np.isfinite(_read_cell(cell, False)[0]) or HIDDEN.match(cell) for cell in row[1:] if cell)


def _filled(row: Any) -> list[str]:
    """Write a merged heading above each of its columns."""
    made: list[str] = []
    for cell in row:
        made.append(cell or (made[-1] if made else ""))
    return made


def _read_cell(text: str, decimal_comma: bool) -> tuple[float, bool, bool]:
    """Read one cell: the number, whether it is suppressed, whether it is a count with its share."""
    plain = text.strip()
    if not plain or HIDDEN.match(plain):
        return float("nan"), True, False
    pair = _COUNT_AND_SHARE.match(plain)
    if pair and re.search(r"[(\[/|]", plain):
        number = _number(pair[1], decimal_comma)
        return number, False, bool(np.isfinite(number) and number == round(number))
    return _number(plain, decimal_comma), False, False


def _number(text: str, decimal_comma: bool) -> float:
    plain = re.sub(r"[%€$£*†‡§   ']|(?<=\d)\s(?=\d{3})", "", text.strip())
    if plain.startswith("(") and plain.endswith(")"):
        plain = plain[1:-1]
    if decimal_comma:
        plain = plain.replace(".", "").replace(",", ".")
    elif re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?", plain):
        plain = plain.replace(",", "")
    elif re.fullmatch(r"[-+]?\d+,\d+", plain):
        plain = plain.replace(",", ".")
    return float(plain) if _NUMBER.match(plain) else float("nan")


# What does the name of a row or column say about its numbers?
#
# Names come in many languages and spellings: ``Maximum age``, ``máx``, ``income_min``, ``p100``, ``Anzahl``. A name is
# cut into words without accents, and the words are looked up.


Role = Literal[
    "count", "endpoint", "share", "quantile", "spread", "dof", "fit", "ratio", "at risk", "events", "per unit",
    "identifier", "statistic", "label", "",
]  # fmt: skip

_ENDPOINTS = {
    "min", "max", "minimum", "maximum", "mini", "maxi", "minima", "maxima", "minimal", "maximal", "minimale",
    "maximale", "minimaler", "maximaler", "minimo", "maximo", "massimo", "minime", "smallest", "largest", "lowest",
    "highest", "youngest", "oldest", "kleinster", "kleinste", "kleinstes", "grosster", "grosste", "grosstes",
    "niedrigster", "niedrigste", "hochster", "hochste", "hochstes", "minst", "minsta", "storst", "storsta", "lagsta",
    "hogsta", "laveste", "hojeste", "hoyeste", "najmniejsza", "najwieksza", "najmniejszy", "najwiekszy", "pienin",
    "suurin", "spannweite", "rango", "etendue", "amplitude", "wertebereich", "range", "p0", "p100", "q0", "q100",
    "pct0", "pct100", "lo", "hi", "whisker", "extreme", "spanne", "menor", "mayor", "maior", "laagste", "hoogste",
    "grootste",
}  # fmt: skip
_COUNTS = {
    "n", "nobs", "count", "counts", "freq", "freqs", "frequency", "frequencies", "number", "numbers", "cases", "obs",
    "observations", "people", "persons", "respondents", "patients", "subjects", "participants", "records", "households",
    "firms", "units", "anzahl", "haufigkeit", "haufigkeiten", "falle", "fallzahl", "personen", "effectif", "effectifs",
    "nombre", "frequence", "frequences", "frecuencia", "frecuencias", "casos", "numero", "recuento", "conteo",
    "frequenza", "frequenze", "conteggio", "casi", "aantal", "aantallen", "personas", "liczba", "liczebnosc", "antal",
    "lukumaara", "antall", "ant", "contagem", "pessoas", "quantidade", "df_n",
}  # fmt: skip
_SHARES = {
    "percent", "percentage", "percentages", "pct", "pc", "share", "shares", "proportion", "proportions", "prop", "perc",
    "prozent", "anteil", "anteile", "pourcentage", "pourcent", "part", "parts", "porcentaje", "proporcion",
    "percentuale", "quota", "procent", "andel", "udzial", "percentual", "proporcao", "prevalence", "rate", "incidence",
    "pravalenz", "quote",
}  # fmt: skip
_SPREADS = {
    "sd",
    "std",
    "stdev",
    "stddev",
    "deviation",
    "variance",
    "var",
    "varianz",
    "standardabweichung",
    "ecart",
}
_STATISTICS = {
    "mean", "means", "average", "avg", "median", "mode", "total", "sum", "se", "stderr", "error", "coef", "coefficient",
    "coefficients", "estimate", "beta", "pvalue", "tvalue", "zvalue", "fvalue", "statistic", "test", "ci", "lower",
    "upper",
    "mittelwert", "durchschnitt", "moyenne", "mediane", "media", "mediana", "gini", "hhi", "theil", "skewness",
    "kurtosis", "iqr", "index", "ratio", "aic", "bic", "loglik", "llf", "survival", "hazard", "cumulative", "weighted",
    "summe", "somme", "suma", "somma", "gemiddelde", "mediaan", "srednia", "diff", "difference", "change", "growth",
    "effect", "rho", "correlation", "chi2", "density", "mw", "medelvarde",
}  # fmt: skip
_PER_UNIT = {
    "residual", "residuals", "resid", "residuo", "residuen", "residu", "fitted", "leverage", "cook", "cooks", "dfbeta",
    "dfbetas", "influence", "yhat", "predicted", "prediction", "predictions", "hat",
}  # fmt: skip
_PERSONS = {
    "person", "persons", "patient", "respondent", "subject", "participant", "individual", "employee", "worker",
    "student", "pupil", "customer", "client", "member", "citizen", "household", "hh", "case", "record", "pers",
    "personen", "firm", "company", "enterprise", "establishment", "business", "user", "p", "indiv", "pat",
}  # fmt: skip
_ID_WORDS = {"id", "nr", "no", "key", "code", "number", "uid", "ident", "identifier"}
_OWN_NAMES = {
    "id", "pid", "uid", "uuid", "guid", "hhid", "personid", "persnr", "persid", "patid", "ssn", "nino", "nhs",
    "nhsnumber", "surname", "lastname", "firstname", "forename", "vorname", "nachname", "familienname", "apellido",
    "apellidos", "nom", "prenom", "email", "mail", "phone", "telephone", "telefon", "mobile", "siren", "siret", "vatin",
    "cpf", "dni", "nif", "bsn", "pesel", "personnummer", "birthdate", "dob", "geburtsdatum", "address", "adresse",
    "iban", "caseid", "recordid", "respondentid", "subjectid", "patientid", "identifier", "idnumber", "ident",
}  # fmt: skip
_RATIOS = {"or", "rr", "hr", "odds", "riskratio", "oddsratio"}
_DOF = (
    "df resid",
    "df residual",
    "residual df",
    "residual degrees of freedom",
    "df residuals",
    "degrees of freedom",
)
_FIT = ("r squared", "rsquared", "r2", "r sq", "rsq", "multiple r squared", "r square")
_AT_RISK = ("at risk", "n risk", "number at risk", "nrisk", "unter risiko", "atrisk", "n at risk", "risk set")
_EVENTS = ("events", "event", "deaths", "n event", "nevent", "failures", "d", "died", "ereignisse")
_QUANTILE = re.compile(
    r"^(?:p|q|pct|perc|percentile|quantile|centile)?\s*_?(\d{1,3}(?:[.,]\d+)?)\s*(?:%|th|st|nd|rd)?$"
)
TOTAL = re.compile(
    r"^\(?(grand )?(total|all|sum|overall|together|margin|everyone|everybody|gesamt|insgesamt|alle|summe|ensemble|"
    r"tous|totale|totaal|suma|summa|zusammen|razem|ogolem)e?s?\)?$"
)
BASE = re.compile(r"\b[nN]\s*=\s*(\d[\d,. ]*)")


def words_of(name: str) -> list[str]:
    """Cut a name into plain words: no accents, no case, CamelCase and digits after letters kept together.

    Examples
    --------
    >>> words_of("MáxIncome (EUR)"), words_of("income_min"), words_of("p100")
    (['max', 'income', 'eur'], ['income', 'min'], ['p100'])
    """
    spaced = re.sub(r"(?<=[a-z\u00df-\u00ff])(?=[A-Z])", " ", name)
    bare = unicodedata.normalize("NFKD", spaced.replace("ß", "ss").replace("ø", "o").replace("ł", "l"))
    plain = "".join(sign for sign in bare if not unicodedata.combining(sign)).lower()
    return re.findall(r"[a-z]+\d*|\d+(?:\.\d+)?", plain)


def is_total(name: str) -> bool:
    """Whether a row or column is a total.

    Examples
    --------
    >>> is_total("Total"), is_total("Insgesamt"), is_total("total pay")
    (True, True, False)
    """
    return bool(TOTAL.match(" ".join(words_of(name))))


def base_of(name: str) -> float | None:
    """Read how many people a heading says are behind its numbers.

    Examples
    --------
    >>> base_of("Women (n = 1,180)"), base_of("Women")
    (1180.0, None)
    """
    found = BASE.search(name)
    digits = re.sub(r"[^\d]", "", found[1]) if found else ""
    return float(digits) if digits else None


def quantile_of(name: str) -> float | None:
    """Read which quantile a name means, between 0 and 1.

    Examples
    --------
    >>> quantile_of("p25"), quantile_of("95th"), quantile_of("50%"), quantile_of("median"), quantile_of("2020")
    (0.25, 0.95, 0.5, 0.5, None)
    """
    plain = " ".join(words_of(name))
    if plain in ("median", "mediane", "mediana", "mediaan"):
        return 0.5
    found = _QUANTILE.match(name.strip().lower().replace(" percentile", "th").rstrip("."))
    if not found or name.strip().isdigit():
        return None
    number = float(found[1].replace(",", "."))
    return number / 100 if number <= 100 else None


def role_of(name: str) -> Role:
    """Say what a name means; empty where it says nothing.

    Examples
    --------
    >>> [role_of(name) for name in ("n", "Maximum age", "income_min", "máx", "P100", "share", "age range")]
    ['count', 'endpoint', 'endpoint', 'endpoint', 'endpoint', 'share', 'endpoint']
    >>> [role_of(name) for name in ("region", "person_id", "region id", "Std. Dev.", "minutes", "df_resid")]
    ['', 'identifier', '', 'spread', '', 'dof']
    """
    words = words_of(name)
    plain = " ".join(words)
    bag = set(words)
    if not words:
        return "share" if "%" in name else ""
    known: list[tuple[Role, bool]] = [
        ("dof", plain in _DOF or plain in ("df resid", "dfresid", "dof") or bag == {"df"}),
        ("fit", plain in _FIT),
        ("at risk", plain in _AT_RISK),
        ("events", plain in _EVENTS),
        ("identifier", _is_identifier(words)),
        ("per unit", bool(bag & _PER_UNIT)),
        ("endpoint", _is_endpoint(name, words)),
        (
            "ratio",
            bag <= _RATIOS or plain in ("odds ratio", "risk ratio", "relative risk", "prevalence ratio"),
        ),
        ("quantile", quantile_of(name) is not None),
        ("spread", bool(bag & _SPREADS) or plain in ("standard deviation", "std dev", "st dev")),
        ("share", "%" in name or bool(bag & _SHARES)),
        ("count", bool(bag & _COUNTS) and not bag & _STATISTICS),
        ("statistic", bool(bag & _STATISTICS) and not is_total(name)),
    ]
    # "n (%)" prints counts with a share in brackets.
    if re.match(r"^\s*(n|no\.?|count|freq\w*)\s*[(/,]\s*%", name.lower()):
        return "count"
    return next((role for role, holds in known if holds), "")


def _is_identifier(words: list[str]) -> bool:
    joined = "".join(words)
    if joined in _OWN_NAMES or words in (["name"], ["full", "name"]):
        return True
    return len(words) > 1 and bool(set(words) & _PERSONS) and bool(set(words) & (_ID_WORDS | {"name"}))


def _is_endpoint(name: str, words: list[str]) -> bool:
    quantile = quantile_of(name)
    if quantile is not None and quantile in (0.0, 1.0) and not name.strip().isdigit():
        return True
    found = set(words) & _ENDPOINTS
    # Some of these words mean other things beside other words: "hi" is a high only alone.
    return bool(found - {"lo", "hi", "mini", "amplitude"}) or (bool(found) and len(words) == 1)
