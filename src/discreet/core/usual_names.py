"""What a column name usually means, in several languages and in the codes of well-known surveys."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_IDENTIFIERS = {
    "a name": """name fullname surname lastname firstname forename givenname familyname middlename
        maidenname nachname vorname familienname nom prenom nombre apellido apellidos cognome nome sobrenome
        apelido naam voornaam achternaam nazwisko imie navn fornavn etternavn efternamn fornamn username
        login""",
    "an e-mail address": "email mail emailaddress courriel correo epost",
    "a phone number": """phone telephone telefon telefono telephonenumber mobile cellphone handy tel gsm
        telefoon fax""",
    "a street address": """address addr street streetaddress adresse anschrift strasse direccion indirizzo
        endereco adres adress rue calle""",
    "a national or tax number": """ssn socialsecurity socialsecuritynumber nin nino nhs nhsnumber passport
        passportnumber reisepass passeport pasaporte personnummer fodselsnummer cpr cprnummer nir dni nie
        bsn pesel cpf codicefiscale taxid steuernummer svnr sozialversicherungsnummer insee driverslicense
        licenseplate kennzeichen""",
    "an account or card number": """iban bic accountnumber kontonummer creditcard cardnumber bankaccount mrn
        medicalrecordnumber""",
    "a person's number in the survey": "rb030 pb030 personid personnumber personnr",
    "a network address": "ip ipaddress mac macaddress url website homepage deviceid imei",
}

_KEYS = {
    "age": """age ages agep agegr agegrp agegroup ageband agecat agerange alter altersgruppe edad eta idade
        leeftijd wiek alder ika""",
    "sex": """sex gender geschlecht sexe sexo genere genero sesso geslacht plec kjonn kon koen sukupuoli
        rb090""",
    "birth": """birth birthdate birthday birthyear dob dateofbirth yob born geburt geburtsdatum geburtsjahr
        naissance nacimiento nascita nascimento geboorte geboortedatum urodzenia fodt fodelse rb080 pob pobp""",
    "death": "death deathdate dod died",
    "postcode": """zip zipcode zip5 postcode postalcode postal plz postleitzahl codepostal codigopostal cap
        cep postnummer postnr""",
    "place": """region state county city town municipality district province community commune departement
        department bundesland kreis gemeinde stadt ort ville ciudad municipio provincia comune regione
        regiao gmina wojewodztwo kommune kommun fylke lan puma nuts nuts1 nuts2 nuts3 lau fips area
        neighbourhood neighborhood borough location residence placesize urban rural urbrur urbanrural geo
        db040 st""",
    "race or ethnicity": """race ethnic ethnicity ethnie hispanic hisp rac1p rac2p rac3p raza etnia
        indigenous tribe caste""",
    "marital status": """marital maritalstatus marstat married marriage familienstand matrimonial
        civilstatus etatcivil estadocivil statocivile burgerlijkestaat sivilstand civilstand mar msp pb190""",
    "education": """education educ edu edulevel schooling school schl degree qualification bildung
        bildungsgrad schulabschluss diplome educacion estudios istruzione escolaridade opleiding
        wyksztalcenie utdanning utbildning pe040""",
    "occupation": """occupation occup occp job jobtitle profession beruf metier ocupacion profesion
        occupazione professione ocupacao beroep zawod yrke isco soc socp workclass cow socprof employer
        branch industry indp indpcat nace naics sector pl031 pl051""",
    "nationality": """country nationality citizenship citizen nation nativity foreign immigrant migrant
        migration land staatsangehorigkeit staatsburgerschaft herkunft pays nationalite pais nacionalidad
        cittadinanza nazionalita nationaliteit obywatelstwo nasjonalitet pb220a cit""",
    "language": "language mothertongue sprache muttersprache langue idioma lingua taal spraak",
    "household": """household hhsize householdsize hsize famsize familysize nchild nchildren children kids
        kinder haushaltsgrosse enfants hijos relationship relation relate relat relp relshipp family familie
        famille familia npf noc""",
    "housing": """housing tenure dwelling wohnung logement vivienda ownrent housingtype rooms roof walls
        water electcon""",
    "a visible trait": """height disability disabled eyecolor haircolor veteran dvet dphy drem deye dear
        groesse taille""",
}

_SENSITIVE = {
    "money": """income earnings earning salary wage wages pay revenue gain loss pincp pincpdecile povpip pov
        wealth savings debt loan credit expenditure expend einkommen gehalt lohn revenu salaire ingreso
        ingresos salario reddito stipendio renda inkomen dochod inntekt inkomst balance amount salaryclass
        turnover""",
    "health": """disease diagnosis diagnose icd illness health healthcare hiv aids cancer medication drug
        treatment therapy pregnancy depress depression krankheit gesundheit maladie enfermedad malattia
        doenca ziekte alcabuse smoke alcohol sickness""",
    "beliefs or crime": """religion religious faith party vote voting political politics union crime offense
        offence arrest recid sentence orientation religie konfession""",
    "test results": "score grade mark marks result gpa iq",
}

_SURVEY_WEIGHT = _words("""fnlwgt pwgtp wgtp wgt wgts wt wtper wtfinl finalwt finalweight perwt hhwt
        sampweight samplingweight sampleweight surveyweight designweight pweight wght
        hochrechnungsfaktor rb050 db090 pb040 kish expansionfactor factorexp""")
_WEIGHT_OF_HOMES = _words("db090 hhwt wgtp hhweight householdweight")
# In every language the word for a survey weight is also the word for that of a body.
_PLAIN_WEIGHT = _words("weight weights peso poids gewicht vekt vikt waga w")
_REPLICATE = re.compile(r"^(?:pwgtp|wgtp|repwtp?|rwgt|brr|jk|repweight)\d+$")
_MASS = frozenset({"kg", "kilo", "kilos", "kilogram", "kilograms", "lb", "lbs", "pounds"})
_BODY = frozenset({"height", "bmi", "groesse", "taille", "statura", "altura", "bodyheight"})

_HOUSEHOLD = _words("""hhid hid hhnr hhnum hhno householdid householdnumber householdnr idhh idhousehold
        serialno db030 hb030 rx030 px030 orihid famid familyid
        haushaltsnummer haushaltsid idmenage hogarid hhserial hhkey""")
_STRATA = _words("stratum strata strat schicht strate estrato strato db050 varstrat")
_PSU = _words("psu cluster clust primarysamplingunit varpsu upm klumpen grappe db060")
_COORDINATES = _words("lat latitude lon lng long longitude xcoord ycoord easting northing coordx coordy")
_PARTNERS = {
    **dict.fromkeys(("lat", "latitude"), ("lon", "lng", "long", "longitude")),
    **dict.fromkeys(("lon", "lng", "long", "longitude"), ("lat", "latitude")),
    "x": ("y",),
    "y": ("x",),
    "easting": ("northing",),
    "northing": ("easting",),
}
_NUMBERED = _words(
    "id ids uid uuid guid identifier ident idnr nr no num number nummer numero numer serial seq code key pid"
)


def _spread(concepts: dict[str, str]) -> dict[str, str]:
    return {word: concept for concept, words in concepts.items() for word in words.split()}


_MEANINGS = {
    "identifiers": _spread(_IDENTIFIERS),
    "keys": _spread(_KEYS),
    "sensitive": _spread(_SENSITIVE),
}


@dataclass(frozen=True)
class Meaning:
    """What a name suggests: a role, the concept behind it, and whether the whole name says so."""

    role: str
    concept: str
    exact: bool


def words_of(name: str) -> tuple[str, ...]:
    """Split a column name into lower-case words without accents.

    Examples
    --------
    >>> words_of("Marital-Status"), words_of("birthDate"), words_of("région_2")
    (('marital', 'status'), ('birth', 'date'), ('region', '2'))
    """
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss").replace("ø", "o").replace("ł", "l"))
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", plain)
    return tuple(word.lower() for word in re.findall(r"[A-Za-z]+|\d+", plain))


def meaning_of(name: str) -> Meaning | None:
    """Tell which role a column name suggests, keys before identifiers where only a part of it matches.

    Examples
    --------
    >>> meaning_of("native-country")
    Meaning(role='keys', concept='nationality', exact=False)
    >>> meaning_of("email").concept, meaning_of("Einkommen").role, meaning_of("x17") is None
    ('an e-mail address', 'sensitive', True)
    """
    words = words_of(name)
    joined = "".join(words)
    for role, meanings in _MEANINGS.items():
        if joined in meanings:
            return Meaning(role, meanings[joined], exact=True)
    pairs = {first + second for first, second in pairwise(words)}
    parts = [*pairs, *words]
    # "email of parent" identifies, "name of region" does not: a bare "name" gives way to any other word.
    order = ("keys", "identifiers", "sensitive")
    for role in ("identifiers", *order):
        for part in parts:
            concept = _MEANINGS[role].get(part)
            if concept and not (role == "identifiers" and concept == "a name" and _names_a_thing(words)):
                return Meaning(role, concept, exact=False)
    return None


def suggests_weight(name: str, others: Iterable[str]) -> str | None:
    """Tell whether a name means a survey weight: ``"sure"``, ``"likely"``, or None.

    A plain "weight" beside a height or a body mass index is the weight of a body, and so is one in kilograms. A bare
    one may be either: what it is, values must say.

    Examples
    --------
    >>> [suggests_weight(name, ()) for name in ("Poids", "poids_kg", "rb050", "sampling_weight")]
    ['likely', None, 'sure', 'sure']
    """
    words = words_of(name)
    joined = "".join(words)
    if _MASS & set(words):
        return None
    if joined in _SURVEY_WEIGHT or any(a + b in _SURVEY_WEIGHT for a, b in pairwise(words)):
        return "sure"
    if not _PLAIN_WEIGHT & set(words) and not _SURVEY_WEIGHT & set(words):
        return None
    body = any(_BODY & set(words_of(other)) for other in others)
    return None if body else "likely"


def is_weight_of_homes(name: str) -> bool:
    """Whether a name is that of the weight of a household, which a file of persons has beside that of a person."""
    return "".join(words_of(name)) in _WEIGHT_OF_HOMES


def is_replicate_weight(name: str) -> bool:
    """Whether a name is that of one of many replicate weights, which serve variances only."""
    return bool(_REPLICATE.match("".join(words_of(name))))


def structure_of(name: str) -> str | None:
    """Tell whether a name says how the file is built: household, strata, psu or location."""
    words = words_of(name)
    joined = "".join(words)
    for role, known in (
        ("household", _HOUSEHOLD),
        ("strata", _STRATA),
        ("psu", _PSU),
        ("location", _COORDINATES),
    ):
        if joined in known:
            return role
    home = {"household", "hh", "haushalt", "menage", "hogar", "family", "familie"} & set(words)
    return (
        "household" if home and {"id", "nr", "no", "number", "num", "serial", "code"} & set(words) else None
    )


def is_half_of_a_place(name: str, all_columns: tuple[str, ...]) -> bool:
    """Whether a name is that of a coordinate whose other half is there under the name that goes with it.

    Examples
    --------
    >>> columns = ("gps_lat", "gps_long", "x", "y", "long_term")
    >>> [is_half_of_a_place(name, columns) for name in columns]
    [True, True, True, True, False]
    """
    words, others = words_of(name), _all_words(all_columns)
    return any(
        (*words[:place], partner, *words[place + 1 :]) in others
        for place, word in enumerate(words)
        for partner in _PARTNERS.get(word, ())
    )


@lru_cache(maxsize=4)
def _all_words(names: tuple[str, ...]) -> frozenset[tuple[str, ...]]:
    return frozenset(map(words_of, names))


def is_numbered(name: str) -> bool:
    """Whether a name says that its column numbers things: id, nr, number, code.

    Examples
    --------
    >>> is_numbered("person_id"), is_numbered("caseNo"), is_numbered("idea")
    (True, True, False)
    """
    return bool(_NUMBERED & set(words_of(name)))


def _names_a_thing(words: tuple[str, ...]) -> bool:
    persons = {
        "first",
        "last",
        "full",
        "given",
        "family",
        "middle",
        "maiden",
        "user",
        "person",
        "patient",
        "customer",
    }
    bare = {"name", "nom", "nombre", "nome", "naam", "navn"}
    return len(words) > 1 and bool(bare & set(words)) and not persons & set(words)


_CALENDAR = _words("""date datum fecha dato dag day tag jour dia giorno year jahr annee ano anno jaar rok ar month monat
        mois mes mese maand miesiac maned timestamp""")
_PLACES = frozenset({"place", "postcode"})
_PEOPLE = _words("""person patient client customer subject participant respondent member pupil student employee worker
        insured donor resident citizen taxpayer persona paciente cliente personne patiente eleve persoon pacjent
        versicherter versichertennummer kunde schueler teilnehmer""")
_PERSON_NUMBERS = _words(
    "pid persnr persid personid personnr patientid patientennummer patnr patid rb030 pb030 pseudonym"
)


def knowable_by_name(name: str) -> str | None:
    """Tell what an intruder may know by the name of its column: ``"dates"``, ``"places"``, ``"keys"``, or None.

    Examples
    --------
    >>> [knowable_by_name(name) for name in ("admission_date", "Postleitzahl", "sex", "income")]
    ['dates', 'places', 'keys', None]
    """
    meaning = meaning_of(name)
    if meaning is not None and meaning.role == "keys":
        if meaning.concept in _PLACES:
            return "places"
        return "dates" if meaning.concept in ("birth", "death") else "keys"
    if structure_of(name) == "location":
        return "places"
    return "dates" if _CALENDAR & set(words_of(name)) else None


def numbers_people(name: str) -> bool:
    """Whether a name says that its column numbers people, who may have several records.

    Examples
    --------
    >>> [numbers_people(name) for name in ("patient_id", "PatientNr", "persnr", "patient", "case_id", "person_weight")]
    [True, True, True, True, False, False]
    """
    words = words_of(name)
    if "".join(words) in _PERSON_NUMBERS | _PEOPLE:
        return True
    return bool(_PEOPLE & set(words)) and is_numbered(name)


def _phrases(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.split("|"))


_NO_VALUE = _phrases("""na|n/a|n.a.|n.a|#n/a|null|nan|nil|.|..|...|-|--|---|?|??|???|unknown|unk|missing|not known
    |not stated|not available|not reported|not recorded|no answer|dont know|don't know|k.a.|k. a.|k.a|ka
    |keine angabe|keine angaben|unbekannt|fehlt|weiss nicht|weiß nicht|inconnu
    |inconnue|non renseigné|non renseigne|non déterminé|ne sait pas|nsp
    |desconocido|desconocida|sin dato|sin datos|ns/nc|no consta|sconosciuto|non disponibile|n.d.|n/d|desconhecido
    |ignorado|sem informação|onbekend|niet bekend|nieznany|nieznane|brak danych|ukjent|ukendt|okänd|uppgift saknas
    |tuntematon|ei tietoa|neznámý|ismeretlen""")
_CODE = re.compile(r"-[1-9]|-?([789])\1+(?:[.,]0+)?")


def stands_for_missing(text: str, *, among_words: bool) -> bool:
    """Whether a text usually stands for a missing value; 99 and the like do so among words only.

    Examples
    --------
    >>> [stands_for_missing(text, among_words=True) for text in ("k.A.", "Unknown ", "-99", "999", " ", "none")]
    [True, True, True, True, True, False]
    >>> stands_for_missing("88", among_words=False)
    False
    """
    plain = text.strip().casefold()
    if not plain or plain in _NO_VALUE:
        return True
    return bool(_CODE.fullmatch(plain)) and (among_words or plain.startswith("-"))
