"""What does the name of a row or column say about its numbers?

Names come in many languages and spellings: ``Maximum age``, ``máx``, ``income_min``, ``p100``, ``Anzahl``. A name is
cut into words without accents, and the words are looked up.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

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
