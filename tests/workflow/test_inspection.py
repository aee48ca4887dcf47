"""Roles are proposed with a reason, never decided, and never with a data value."""

from __future__ import annotations

import json
import random
import time

import polars as pl
import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.core.errors import InputError
from discreet.core.roles import ROLES, Roles
from discreet.core.usual_names import meaning_of
from discreet.io import load_roles, read, sidecar_path
from discreet.microdata import Microdata
from discreet.workflow.inspection import inspect
from discreet.workflow.role_rules import LOOKS, digits_look, look_of

ROWS = 200
dice = random.Random(1)


def digits(count: int) -> str:
    return "".join(dice.choice("0123456789") for _ in range(count))


def people() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "row": range(1, ROWS + 1),
            "contact": [f"secret{number}@example.org" for number in range(ROWS)],
            "Geschlecht": ["f", "m"] * (ROWS // 2),
            "birth_year": [1950 + number % 50 for number in range(ROWS)],
            "plz": [f"0{1000 + number % 90}" for number in range(ROWS)],
            "salary": [1000.5 + number for number in range(ROWS)],
            "opinion": ["yes", "no", None, "maybe"] * (ROWS // 4),
            "pwgtp": [1 + number % 7 for number in range(ROWS)],
            "pwgtp1": [1 + number % 5 for number in range(ROWS)],
            "hhid": [number // 2 for number in range(ROWS)],
            "nothing": pl.Series([None] * ROWS, dtype=pl.String),
            "same": ["x"] * ROWS,
        }
    )


@pytest.fixture
def inspection():
    return inspect(Microdata(people()))


def role_of(inspection, column: str) -> str | None:
    return inspection.columns.filter(pl.col("column") == column)["role"].item()


def test_each_kind_of_column_gets_its_role(inspection):
    assert inspection.proposal == Roles.of(
        identifiers=["row", "contact"],
        keys=["Geschlecht", "birth_year", "plz"],
        sensitive=["salary", "opinion"],
        weight="pwgtp",
        household="hhid",
    )
    assert inspection.rows == ROWS
    assert role_of(inspection, "nothing") is None
    assert role_of(inspection, "pwgtp1") is None


def test_every_proposal_has_a_reason_and_a_confidence(inspection):
    assert inspection.columns["column"].to_list() == people().columns
    assert inspection.columns["reasons"].str.len_chars().min() > 10
    assert set(inspection.columns["confidence"]) <= {"sure", "likely", "please check"}


def test_counts_leave_missing_values_out(inspection):
    row = inspection.columns.row(by_predicate=pl.col("column") == "opinion", named=True)
    assert row["distinct"] == 3
    assert row["missing_share"] == 0.25
    assert inspection.columns.row(by_predicate=pl.col("column") == "nothing", named=True)["distinct"] == 0


def test_no_data_value_is_shown(inspection, tmp_path):
    shown = [
        str(inspection),
        json.dumps(inspection.to_dict()),
        inspection.save(tmp_path / "a.toml").read_text(),
    ]
    for text in shown:
        assert "secret" not in text
        assert "01000" not in text


def test_the_distinction_of_the_keys_counts_their_combinations(inspection):
    combinations = people().select("Geschlecht", "birth_year", "plz").unique().height
    assert inspection.key_distinction == combinations / ROWS


@pytest.mark.parametrize("kind", ["lazy", "pandas", "pyarrow", "duckdb"])
def test_every_engine_proposes_the_same(kind, inspection):
    pytest.importorskip("polars" if kind == "lazy" else kind)
    import duckdb

    connection = duckdb.connect()
    frame = {
        "lazy": lambda: people().lazy(),
        "pandas": lambda: people().to_pandas(),
        "pyarrow": lambda: people().to_arrow(),
        "duckdb": lambda: connection.from_arrow(people().to_arrow()),
    }[kind]()
    other = inspect(Microdata(frame))
    # An all-missing column has no type of its own in some engines.
    assert other.proposal == inspection.proposal
    counted = ["column", "distinct", "missing_share", "role", "confidence"]
    assert other.columns.select(counted).equals(inspection.columns.select(counted))
    assert other.key_distinction == inspection.key_distinction


def test_roles_that_are_given_stay(tmp_path):
    inspection = inspect(Microdata(people(), keys=["opinion"], sensitive=["plz"]))
    assert inspection.proposal.keys[0] == "opinion"
    assert "plz" in inspection.proposal.sensitive
    assert "plz" not in inspection.proposal.keys
    reasons = dict(inspection.columns.select("column", "reasons").rows())
    assert "you said so" in reasons["plz"]
    assert "would be proposed as keys" in reasons["plz"]


def test_the_saved_proposal_is_a_sidecar_that_read_uses(inspection, tmp_path):
    people().write_csv(tmp_path / "survey.csv")
    file = inspection.save(sidecar_path(tmp_path / "survey.csv"))
    text = file.read_text()
    assert '# "plz" (sure): its name suggests postcode' in text
    assert "Nothing is decided" in text
    assert load_roles(file) == inspection.proposal
    assert read(tmp_path / "survey.csv").roles == inspection.proposal
    with pytest.raises(InputError, match="already exists"):
        inspection.save(file)
    assert inspection.save(file, overwrite=True) == file


def test_body_weight_is_not_a_survey_weight():
    frame = {"weight": [60.5, 70.0] * 20, "height": [160, 180] * 20}
    assert inspect(Microdata(pl.DataFrame(frame))).proposal.weight is None
    assert inspect(Microdata(pl.DataFrame({"weight": [60.5, 70.0] * 20}))).proposal.weight == "weight"


@pytest.mark.parametrize("name", ["weight", "Gewicht", "poids", "peso", "vekt"])
def test_a_bare_word_for_weight_is_decided_by_its_values_and_where_they_fit_both_it_says_so(name):
    """A survey weight that is none makes a file look safer than it is: in doubt the column gets another role."""

    def proposed(values):
        found = inspect(Microdata(pl.DataFrame({name: values, "sex": ["f", "m"] * (len(values) // 2)})))
        row = found.columns.row(by_predicate=pl.col("column") == name, named=True)
        return found.proposal.weight, row["confidence"], row["reasons"]

    people = [float(45 + 7 * (i % 9)) + 0.5 * (i % 2) for i in range(60)]
    weight, confidence, reasons = proposed(people)
    assert weight is None
    assert confidence == "please check"
    assert "kilograms" in reasons
    for survey in (
        [812.4471 + 3.1017 * i for i in range(60)],
        [100.0] * 60,
        [1.0371 - 0.0137 * (i % 7) for i in range(60)],
    ):
        assert proposed(survey)[:2] == (name, "likely")


def test_persons_are_weighted_by_the_weight_of_persons_beside_that_of_households():
    frame = {"db030": [i // 2 for i in range(40)], "db090": [5.5] * 40, "rb050": [6.25, 7.5] * 20}
    found = inspect(Microdata(pl.DataFrame(frame)))
    assert (found.proposal.weight, found.proposal.household) == ("rb050", "db030")
    assert inspect(Microdata(pl.DataFrame(frame).drop("rb050"))).proposal.weight == "db090"


def test_a_weight_that_is_not_positive_is_not_proposed():
    found = inspect(Microdata(pl.DataFrame({"wgt": [0.0, 1.0] * 20, "sex": [1, 2] * 20})))
    assert found.proposal.weight is None
    assert "not above zero" in found.columns["reasons"][0]


def test_only_one_column_becomes_the_weight():
    found = inspect(Microdata(pl.DataFrame({"weight": [1.0, 2.0] * 20, "fnlwgt": [5, 6] * 20})))
    assert found.proposal.weight == "fnlwgt"
    assert "one only" in found.columns["reasons"][0]


def test_an_identifier_by_name_needs_more_than_a_few_values():
    found = inspect(Microdata(pl.DataFrame({"telephone": ["A191", "A192"] * 50, "sex": [1, 2] * 50})))
    assert found.proposal.identifiers == ()
    assert "only 2 different values" in found.columns["reasons"][0]


def test_a_small_file_is_not_judged_by_uniqueness():
    found = inspect(Microdata(pl.DataFrame({"answer": ["a", "b", "c"], "case_id": [7, 9, 12]})))
    assert found.proposal.identifiers == ("case_id",)
    assert found.proposal.sensitive == ("answer",)


def test_numbers_that_only_happen_to_be_unique_are_not_identifiers():
    found = inspect(Microdata(pl.DataFrame({"measured": [number / 7 for number in range(300)]})))
    assert found.proposal.sensitive == ("measured",)
    assert "make it a key" in found.columns["reasons"][0]


def test_lists_are_left_without_a_role():
    found = inspect(Microdata(pl.DataFrame({"many": [[1], [2]] * 20, "sex": [1, 2] * 20})))
    assert role_of(found, "many") is None
    assert found.proposal.keys == ("sex",)


@pytest.mark.parametrize(
    ("name", "role", "concept"),
    [
        ("age", "keys", "age"),
        ("Age at interview", "keys", "age"),
        ("marital-status", "keys", "marital status"),
        ("Familienstand", "keys", "marital status"),
        ("code_postal", "keys", "postcode"),
        ("Staatsangehörigkeit", "keys", "nationality"),
        ("dateOfBirth", "keys", "birth"),
        ("regionName", "keys", "place"),
        ("RAC1P", "keys", "race or ethnicity"),
        ("first_name", "identifiers", "a name"),
        ("Prénom", "identifiers", "a name"),
        ("E-Mail", "identifiers", "an e-mail address"),
        ("home address", "identifiers", "a street address"),
        ("Einkommen", "sensitive", "money"),
        ("hiv_status", "sensitive", "health"),
    ],
)
def test_usual_names_are_known_in_several_languages(name, role, concept):
    meaning = meaning_of(name)
    assert meaning is not None
    assert (meaning.role, meaning.concept) == (role, concept)


@pytest.mark.parametrize(
    "name", ["usage", "page", "message", "manage", "image", "x1", "average", "essex", ""]
)
def test_a_word_inside_another_word_means_nothing(name):
    assert meaning_of(name) is None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: f"{digits(5)}@mail.example.org", "e-mail"),
        (lambda: f"https://example.org/{digits(6)}", "web"),
        (lambda: f"10.0.{dice.randrange(256)}.{dice.randrange(256)}", "IP"),
        (lambda: f"2001:db8:0:0:0:0:0:{digits(4)}", "IP"),
        (lambda: f"2001:db8::{digits(4)}", "IP"),
        (lambda: f"DE{digits(2)} {digits(4)} {digits(4)} {digits(4)} {digits(4)} {digits(2)}", "IBAN"),
        (lambda: f"FR76{digits(23)}", "IBAN"),
        (lambda: f"{digits(4)}-{digits(4)}-{digits(4)}-{digits(4)}", "card"),
        (lambda: f"{digits(3)}-{digits(2)}-{digits(4)}", "US social"),
        (lambda: f"1 {digits(2)} 07 75 {digits(3)} {digits(3)} {digits(2)}", "French"),
        (lambda: f"{digits(8)}{dice.choice('TRWAGMYFP')}", "Spanish"),
        (lambda: f"RSSMRA{digits(2)}A01H{digits(3)}X", "Italian"),
        (lambda: f"AB {digits(2)} {digits(2)} {digits(2)} C", "British"),
        (lambda: f"{digits(2)}0615-{digits(4)}", "Nordic"),
        (lambda: f"1506{digits(2)}-{digits(4)}", "Nordic"),
        (lambda: f"+49 30 {digits(7)}", "phone"),
        (lambda: f"({digits(3)}) {digits(3)}-{digits(4)}", "phone"),
        (lambda: f"0{digits(9)}", "phone"),
        (lambda: f"She told us on day {digits(5)} that the flat was too cold", "free text"),
    ],
)
def test_patterns_are_recognized(make, words):
    look = look_of(pl.Series([make() for _ in range(60)] + [None]))
    assert look is not None
    assert words in look[0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: f"{digits(2)}.{digits(2)}.19{digits(2)}",
        lambda: f"{digits(2)}:{digits(2)}:{digits(2)}",
        lambda: f"0{digits(4)}",
        lambda: f"{digits(5)}-{digits(4)}",
        lambda: dice.choice(["Never-married", "Divorced", "Married, spouse absent"]),
        lambda: f"{dice.randrange(10)}.{dice.randrange(10)}",
        lambda: digits(10),
        lambda: f"A{digits(3)}",
    ],
)
def test_dates_times_codes_and_categories_are_no_identifiers(make):
    assert look_of(pl.Series([make() for _ in range(300)])) is None


def test_personal_numbers_are_recognized_as_whole_numbers():
    numbers = pl.Series([int(f"19{50 + number % 49}0615{1000 + number}") for number in range(99)])
    assert "Nordic" in digits_look(numbers)[0]
    assert digits_look(pl.Series([1_577_836_800 + 86_399 * number for number in range(99)])) is None


values = st.lists(st.none() | st.text(max_size=12) | st.just("repeated"), min_size=1, max_size=60)


@settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=st.text(st.characters(codec="utf-8"), min_size=1, max_size=12), texts=values, numbers=st.data())
def test_any_file_gets_roles_that_fit_it_and_can_be_saved(tmp_path, name, texts, numbers):
    ages = numbers.draw(st.lists(st.none() | st.integers(0, 120), min_size=len(texts), max_size=len(texts)))
    frame = pl.DataFrame(
        {name: texts, f"{name} age": ages}, schema={name: pl.String, f"{name} age": pl.Int64}
    )
    found = inspect(Microdata(frame))
    found.proposal.check(frame.columns)
    assert found.columns.height == 2
    assert set(found.columns["role"].drop_nulls()) <= set(ROLES)
    assert load_roles(found.save(tmp_path / "x.toml", overwrite=True)) == found.proposal


def test_the_looks_compile_and_are_distinct():
    assert len({look.pattern for look in LOOKS}) == len(LOOKS)


def test_one_value_beside_missing_ones_is_not_called_constant():
    frame = pl.DataFrame({"allergy": ["yes", None] * 20, "wave": ["first"] * 40})
    found = {row["column"]: row for row in inspect(frame).columns.iter_rows(named=True)}
    assert found["allergy"]["role"] == "sensitive"
    assert "not in every record" in found["allergy"]["reasons"]
    assert found["wave"]["role"] is None


def test_binary_columns_are_not_called_lists():
    frame = pl.DataFrame({"photo": [b"1", b"2"], "tags": [["a"], ["b"]], "sex": ["f", "m"]})
    reasons = dict(inspect(frame).columns.select("column", "reasons").iter_rows())
    assert "binary" in reasons["photo"]
    assert "lists" in reasons["tags"]


def test_person_numbers_of_a_household_survey_are_identifiers():
    frame = pl.DataFrame(
        {
            "pid": [household + person / 10 for household in range(50) for person in (1, 2)],
            "rb030": [household * 100 + person for household in range(50) for person in (1, 2)],
            "hb030": [household for household in range(50) for _ in (1, 2)],
        }
    )
    proposal = inspect(frame).proposal
    assert proposal.identifiers == ("pid", "rb030")
    assert proposal.household == "hb030"


def test_the_summary_of_the_keys_counts_combinations():
    text = str(inspect(pl.DataFrame({"sex": ["f", "m"] * 20, "income": range(40)})))
    assert "The proposed key has 2 different values for 40 records (5 % as many)." in text


def _role(column, values, **others):
    found = inspect(Microdata(pl.DataFrame({column: values, **others})))
    row = found.columns.row(0, named=True)
    return row["role"], row["reasons"]


FIRST = ["Anna", "Ben", "Clara", "David", "Eva", "Franz", "Greta", "Hans", "Ida", "Jan"]
LAST = ["Müller", "O'Neil", "Bauer", "van der Berg", "Huber", "Gruber", "Steiner", "Moser", "Mayer", "Hofer"]


def test_names_are_identifiers_also_where_people_share_them():
    names = [f"{first} {last}" for first in FIRST for last in LAST] * 5
    role, reasons = _role("who", names)
    assert role == "identifiers"
    assert "names of people" in reasons
    assert not any(part in reasons for part in LAST)
    assert _role("first_name", FIRST * 30)[0] == "identifiers"
    assert (
        _role("town", ["New York", "Los Angeles", "San Diego", "El Paso", "Santa Fe"] * 40)[0]
        != "identifiers"
    )


def test_people_in_free_text_are_found():
    notes = ["feeling better since the last visit, nothing to add", "asked to be called back under 0664 123 45 67",
             "spoke with Frau Huber about the treatment", "told Dr. Moser about the pain"]  # fmt: skip
    role, reasons = _role("notes", [f"{note} {i}" for i, note in enumerate(notes * 30)])
    assert role == "identifiers"
    assert "25 % of the sampled texts hold phone numbers" in reasons
    assert "50 % of the sampled texts hold names of people" in reasons
    assert "Huber" not in reasons


def test_short_notes_that_hold_an_address_are_found_too():
    role, reasons = _role("remark", ["ok"] * 95 + ["write to ann@example.org", "mail bo@example.org"] * 2)
    assert role == "identifiers"
    assert "e-mail addresses" in reasons


@pytest.mark.parametrize(
    ("one", "other"), [("x", "y"), ("gps_lat", "gps_long"), ("lat_home", "lon_home"), ("X_UTM", "Y_UTM")]
)
def test_coordinates_are_places_under_other_names_too(one, other):
    values = [100_000 + 13 * i for i in range(200)]
    found = inspect(Microdata(pl.DataFrame({one: values, other: values[::-1], "sex": [1, 2] * 100})))
    assert found.proposal.location == (one, other)


def test_an_x_without_a_y_is_no_place():
    assert _role("x", [100_000 + 13 * i for i in range(200)])[0] != "location"


def test_codes_for_missing_are_named_as_the_preflight_names_them():
    from discreet import synth

    data = Microdata(
        pl.DataFrame({"pay": [-99] * 10 + list(range(1_000, 1_190)), "age": list(range(20, 70)) * 4})
    )
    row = inspect(data).columns.row(0, named=True)
    assert "-99 looks like a code for missing (5 % of the records)" in row["reasons"]
    assert "--missing-token=-99" in row["reasons"]
    assert "code" not in inspect(data).columns.row(1, named=True)["reasons"]
    assert any(f.kind == "coded-missing" and f.columns == ("pay",) for f in synth.preflight(data).findings)


def test_a_doubtful_date_is_named_by_inspect(tmp_path):
    import discreet
    from discreet.core.errors import DiscreetWarning

    path = tmp_path / "a.csv"
    path.write_text("born\n" + "03/04/1990\n05/06/1991\n" * 30)
    with pytest.warns(DiscreetWarning):
        data = discreet.read(path)
    assert "--dates dmy" in inspect(data).columns.row(0, named=True)["reasons"]


def test_a_short_wide_file_is_counted_like_any_other(monkeypatch):
    from discreet.workflow import inspection

    kinds = [[1.0, None, float("nan"), 1.0], ["a", "b", "a", None], [1, 2, 3, 4], [True, True, True, True]]
    wide = Microdata(pl.DataFrame({f"c{i}": kinds[i % 4] for i in range(220)}))
    short = inspect(wide).columns
    monkeypatch.setattr(inspection, "_MANY_COLUMNS", 10**9)
    assert inspect(wide).columns.equals(short)


@pytest.mark.slow
def test_five_thousand_columns_are_inspected_in_seconds(tmp_path):
    file = tmp_path / "wide.csv"
    rows = [",".join(str(i * j % 7) for i in range(5_000)) for j in range(3)]
    file.write_text("\n".join([",".join(f"c{i}" for i in range(5_000)), *rows]))
    began = time.process_time()
    assert inspect(read(file)).columns.height == 5_000
    assert time.process_time() - began < 30


def test_a_file_of_nothing_but_missing_values_is_inspected():
    found = inspect(pl.DataFrame({"empty": [None, None]}))
    assert found.rows == 2
    assert found.proposal.to_dict() == {}


@pytest.mark.parametrize(
    "code",
    [
        "NA",
        "n/a",
        "-99",
        "999",
        "?",
        ".",
        "-",
        "  ",
        "unknown",
        "k.A.",
        "inconnu",
        "NS/NC",
        "onbekend",
        "Brak danych",
    ],
)
def test_texts_that_stand_for_a_missing_value_are_named(code):
    found = inspect(Microdata(pl.DataFrame({"smokes": ["yes", "no", "no", code] * 30})))
    assert found.codes == {"smokes": (code,)}
    assert "25 % of the records" in found.columns["reasons"][0]
    assert "--missing-token=" in found.columns["reasons"][0]


@pytest.mark.parametrize(
    "texts", [["none", "some", "many"], ["77", "88", "99"], ["a", "b", "na\u00efve"], ["?", "?", "?"]]
)
def test_texts_that_say_something_are_no_codes(texts):
    assert inspect(Microdata(pl.DataFrame({"x": texts * 40}))).codes == {}


@pytest.mark.parametrize("name", ["patient_id", "PatientNr", "persnr", "client number", "pseudonym"])
def test_a_number_of_people_that_repeats_is_the_person_with_the_reason(name, tmp_path):
    stays = pl.DataFrame({name: [7000 + 3 * (number // 2) for number in range(200)], "sex": ["f", "m"] * 100})
    found = inspect(Microdata(stays))
    assert found.proposal.person == name
    assert name in found.proposal.identifiers
    assert "100 records repeat a number" in found.columns["reasons"][0]
    written = found.save(tmp_path / "stays.roles.toml").read_text()
    assert f'person = "{name}"' in written or f'person = ["{name}"]' in written
    assert load_roles(tmp_path / "stays.roles.toml").person == name


def test_a_number_that_never_repeats_or_is_a_place_is_no_person():
    frame = pl.DataFrame({"patient_id": range(200), "postcode": [f"{1000 + n % 60}" for n in range(200)]})
    assert inspect(Microdata(frame)).proposal.person is None
