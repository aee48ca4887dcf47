import json

import pandas as pd
import polars as pl
import pytest

from discreet import Hierarchy, Microdata
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.protect import Band, Draft, DropIdentifiers, Generalize, Plan, ReorderRecords, Round, Treatment

PEOPLE = pl.DataFrame({"name": list("abcd"), "age": [17, 34, 34, 70], "pay": [101, 249, None, 998]})
PLAN = Plan(
    [
        DropIdentifiers(),
        Generalize({"age": 1}, {"age": Hierarchy.intervals([10, 20])}),
        Round({"pay": 100}),
        ReorderRecords(),
    ],
    title="Ours",
)


def people(frame=PEOPLE):
    return Microdata(frame, keys="age", identifiers="name", sensitive="pay")


def test_a_plan_survives_its_file(tmp_path):
    path = PLAN.save(tmp_path / "plan.toml")
    assert Plan.load(path) == PLAN
    with pytest.raises(InputError, match=r"plan\.toml"):
        PLAN.save(path)


def test_the_same_seed_gives_the_same_bytes_and_another_does_not():
    first, again, other = (PLAN.apply(people(), seed=seed).data.frame for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)


def test_the_log_has_an_entry_a_step_with_changed_cells_by_column():
    log = PLAN.apply(people(), seed=1).log
    assert [step.treatment for step in log] == ["drop-identifiers", "generalize", "round", "reorder-records"]
    assert log[1].changed_cells == {"age": 4}
    assert log[2].changed_cells == {"pay": 3}
    json.dumps([step.to_dict() for step in log], allow_nan=False)


def test_the_public_log_holds_no_seed():
    release = PLAN.apply(people(), seed=123456789)
    public = json.dumps(release.to_dict())
    assert "seed" not in public
    assert all("seed" in step["internal"] for step in release.to_dict(internal=True)["steps"])


def test_what_comes_back_is_of_the_kind_that_came_in():
    for frame in (PEOPLE, PEOPLE.lazy(), PEOPLE.to_pandas(), PEOPLE.to_arrow()):
        made = PLAN.apply(people(frame), seed=1).data.frame
        assert type(made) is type(frame)


def test_pandas_whole_numbers_with_holes_stay_whole():
    frame = pd.DataFrame({"pay": pd.array([101, None, 250], dtype="Int64")}, index=[7, 8, 9])
    made = Round({"pay": 100}).apply(Microdata(frame)).data.frame
    assert made["pay"].dtype == "Int64"
    assert made.index.tolist() == [7, 8, 9]
    assert made["pay"].tolist()[0] == 100


def test_a_dry_run_tells_what_would_change_and_changes_nothing():
    data = people()
    trial = PLAN.dry_run(data, seed=1)
    assert trial.data is data
    assert trial.log[2].changed_cells == {"pay": 3}


def test_a_draft_steps_forward_and_back():
    draft = Draft.of(people(), seed=1)
    banded = draft.then(Band(widths={"age": 10}))
    assert banded.plan.steps == (Band(widths={"age": 10}),)
    assert banded.back() is draft
    with pytest.raises(ParameterError, match="no step"):
        draft.back()


def test_a_failing_step_is_named_by_its_number():
    with pytest.raises(ColumnError, match=r"step 2 of the plan \(round\).*'pay'"):
        Plan([DropIdentifiers(), Round({"payy": 10})]).apply(people())


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        ("", ParameterError, "no steps"),
        ("[[step]]\nbreaks = 1", ParameterError, "Step 1"),
        ("[[step]]\ntreatment = 'bandd'", ParameterError, "'band'"),
        ("[[step]]\ntreatment = 'band'\nbreak = 1", ParameterError, "'breaks'"),
        ("[[steps]]\ntreatment = 'band'", ParameterError, "'step'"),
        ("step = ", InputError, "not valid TOML"),
    ],
)
def test_a_bad_plan_file_is_refused_with_the_reason(tmp_path, text, error, match):
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(error, match=match):
        Plan.load(tmp_path / "p.toml")


def test_secrets_cannot_come_from_a_plan_file():
    for kind in Treatment.known.values():
        for secret in kind.secrets:
            with pytest.raises(ParameterError):
                Treatment.named(kind.__name__, {secret: "x"})
