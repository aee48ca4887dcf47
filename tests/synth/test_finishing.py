"""What is done before a synthetic file leaves."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet.core.errors import ColumnError, ParameterError
from discreet.microdata import Metadata, Microdata
from discreet.risk import replicated_uniques
from discreet.synth.release_preparation import finish, rules_against_chance


def files(n=1500):
    rng = np.random.default_rng(1)

    def one():
        start = rng.integers(1950, 2010, n)
        return pl.DataFrame(
            {
                "age": rng.integers(16, 95, n),
                "sex": rng.choice(["f", "m"], n),
                "pay": np.where(rng.random(n) < 0.1, -8, rng.lognormal(7, 1, n).round()).astype(np.int64),
                "start": start,
                "end": start + rng.integers(0, 20, n),
            }
        )

    return Microdata(one(), keys=["age", "sex", "start"]), Microdata(one(), keys=["age", "sex", "start"])


def test_everything_is_done_in_order_and_logged():
    original, synthetic = files()
    release = finish(
        synthetic,
        original,
        smoothing={"pay": "spline"},
        top={"pay": 5000},
        bottom={"pay": 100},
        codes={"pay": [-8]},
        remove_uniques=True,
        constraints=["start <= end", "pay >= -8"],
        label="synthetic",
        prefix="syn_",
        seed=1,
    )
    names = [step.treatment for step in release.log]
    assert names == [
        "smoothing", "top-bottom-code", "remove-replicated-uniques", "constraint-check", "label", "rename",
    ]  # fmt: skip
    frame = release.data.frame
    assert frame.columns == ["syn_age", "syn_sex", "syn_pay", "syn_start", "syn_end", "syn_source"]
    assert release.data.roles.keys == ("syn_age", "syn_sex", "syn_start")
    kept = frame.filter(pl.col("syn_pay") != -8)["syn_pay"]
    assert (kept.min(), kept.max()) == (100, 5000)
    assert (frame["syn_pay"] == -8).any()
    assert frame["syn_source"].unique().to_list() == ["synthetic"]
    assert "0 % of the records" in release.log[3].notes[0]
    assert "seed" not in str(release.to_dict())


def test_codes_survive_blurring_untouched_and_other_values_stay_within_the_original_range():
    original, synthetic = files()
    blurred = finish(synthetic, original, smoothing={"pay": "density"}, codes={"pay": [-8]}, seed=2)
    before, after = synthetic.frame["pay"], blurred.data.frame["pay"]
    assert ((before == -8) == (after == -8)).all()
    assert blurred.log[0].changed_cells["pay"] > 1000
    real = original.frame.filter(pl.col("pay") != -8)["pay"]
    assert after.filter(after != -8).is_between(real.min(), real.max()).all()
    again = finish(synthetic, original, smoothing={"pay": "density"}, codes={"pay": [-8]}, seed=2)
    assert again.data.frame.equals(blurred.data.frame)


def test_nobody_is_alone_in_both_files_afterwards():
    original, synthetic = files()
    release = finish(synthetic, original, remove_uniques=["age", "sex"])
    assert replicated_uniques(original, release.data, keys=["age", "sex"]).value == 0


@pytest.mark.parametrize("kind", ["pandas", "pyarrow"])
def test_the_kind_of_frame_stays(kind):
    _, synthetic = files(200)
    frame = synthetic.frame.to_pandas() if kind == "pandas" else synthetic.frame.to_arrow()
    release = finish(Microdata(frame), top={"pay": 900}, codes={"pay": [-8]}, label="made up", suffix="_s")
    assert type(release.data.frame) is type(frame)
    assert release.data.columns[-1] == "source_s"


def test_labels_of_columns_follow_their_new_names():
    made = Microdata(pl.DataFrame({"a": [1, 2]}), metadata=Metadata(column_labels={"a": "Age"}))
    assert finish(made, prefix="x_").data.metadata.column_labels == {"x_a": "Age"}


def test_keeping_a_rule_is_held_against_chance():
    original, synthetic = files()
    kept = rules_against_chance(synthetic, ["start <= end", "age >= 0"], original=original, seed=1)
    assert kept.value == 1.0
    rules = kept.detail["rules"]
    assert rules["share_by_chance"][0] > 0.2
    assert rules["kept_beyond_chance"][1] is None
    mixed = synthetic.with_frame(synthetic.frame.with_columns(pl.col("end").shuffle(seed=1)))
    assert abs(rules_against_chance(mixed, "start <= end", seed=1).value) < 0.1
    assert "chance" in kept.caveats[0]


def test_an_implication_is_counted_over_all_records():
    made = Microdata(pl.DataFrame({"age": [10, 40] * 50, "job": ["no", "yes"] * 50}))
    found = rules_against_chance(made, "if age < 16 then job == 'no'", seed=1)
    assert found.value == 1.0
    assert found.detail["rules"]["share_by_chance"][0] == pytest.approx(0.25, abs=0.05)


def test_mistakes_are_named():
    original, synthetic = files(50)
    with pytest.raises(ParameterError, match="second argument"):
        finish(synthetic, remove_uniques=True)
    with pytest.raises(ColumnError, match=r"'pays'.*top"):
        finish(synthetic, top={"pays": 1})
    with pytest.raises(ColumnError, match="already has a column 'age'"):
        finish(synthetic, label="x", label_column="age")
    with pytest.raises(ColumnError, match="no number"):
        finish(synthetic, smoothing={"sex": "spline"})
    with pytest.raises(ParameterError, match="no rule"):
        rules_against_chance(original, [])
