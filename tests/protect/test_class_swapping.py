from __future__ import annotations

from datetime import date

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, risk
from discreet.core.errors import ParameterError
from discreet.protect import AlphaK, ClassSwap, KAnonymity, LDiversity, Plan, TCloseness


def classes(n=600, classes=60, seed=5, share=0.3):
    draw = np.random.default_rng(seed)
    home = np.sort(draw.integers(0, classes, n))
    # Half of the classes lean to one side, as neighborhoods do.
    leaning = draw.random(classes) < 0.5
    ill = draw.random(n) < np.where(leaning[home], share / 10, min(1.0, 2 * share))
    return pl.DataFrame(
        {"home": home, "ill": np.where(ill, "yes", "no"), "pay": draw.integers(1, 9, n) * 100}
    )


def data(**options):
    return Microdata(classes(**options), keys="home", sensitive=["ill", "pay"])


def test_no_class_gives_a_value_away_any_more_and_counts_stay_exact():
    before = data()
    assert risk.alpha_k(before, sensitive="ill").value == 1
    release = ClassSwap(AlphaK("ill", 0.9)).apply(before, seed=1)
    after = release.data
    assert risk.alpha_k(after, sensitive="ill").value <= 0.9
    assert after.frame["ill"].sort().equals(before.frame["ill"].sort())
    assert after.frame.select("home", "pay").equals(before.frame.select("home", "pay"))
    assert release.log[0].parameters["still_broken"] == {}


def test_only_classes_that_break_a_model_and_those_that_help_them_change():
    before = data()
    sound = risk.alpha_k(before, sensitive="ill").value
    release = ClassSwap(AlphaK("ill", sound)).apply(before, seed=1)
    assert release.data.frame.equals(before.frame)
    changed = (
        ClassSwap(AlphaK("ill", 0.9)).apply(before, seed=1).data.frame["ill"] != before.frame["ill"]
    ).sum()
    # Each class without one kind of value needs one of them, and each swap changes two cells.
    lacking = before.frame.group_by("home").agg(pl.col("ill").n_unique())["ill"].eq(1).sum()
    assert changed <= 4 * lacking


def test_diversity_and_closeness_can_be_aimed_at_too():
    models = [LDiversity("ill", 2), TCloseness("ill", 0.35)]
    made = ClassSwap(models).apply(data(), seed=2).data
    assert risk.l_diversity(made, sensitive="ill").value >= 2
    assert risk.t_closeness(made, sensitive="ill").value <= 0.35


def test_what_cannot_be_dealt_out_is_said():
    rare = data(n=400, classes=80, share=0.05)
    release = ClassSwap(AlphaK("ill", 0.9)).apply(rare, seed=1)
    left = release.log[0].parameters["still_broken"]["ill"]
    assert left == risk.alpha_k(release.data, sensitive="ill", alpha=0.9).figures["records_above"]
    assert any("still give 'ill' away" in note for note in release.log[0].notes)


def test_records_without_keys_are_in_no_class_and_stay():
    frame = classes().with_columns(home=pl.when(pl.col("home") < 5).then(None).otherwise("home"))
    before = Microdata(frame, keys="home", sensitive="ill")
    made = ClassSwap(AlphaK("ill", 0.9)).apply(before, seed=1).data
    gone = frame["home"].is_null()
    assert made.frame.filter(gone)["ill"].equals(frame.filter(gone)["ill"])
    assert risk.alpha_k(made).value <= 0.9


def test_models_about_sizes_are_refused():
    with pytest.raises(ParameterError, match="size of classes"):
        ClassSwap([KAnonymity(3)])


def test_a_plan_file_holds_it(tmp_path):
    plan = Plan([ClassSwap([AlphaK("ill", 0.9, common=0.95)], keys=["home"])])
    plan.save(tmp_path / "plan.toml")
    again = Plan.load(tmp_path / "plan.toml")
    assert again.apply(data(), seed=3).data.frame.equals(plan.apply(data(), seed=3).data.frame)


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.6, 0.75, 0.9, 0.95]), st.integers(2, 40))
def test_counts_stay_and_no_sound_class_is_spoiled(seed, alpha, groups):
    before = data(n=200, classes=groups, seed=seed)
    model = AlphaK("ill", alpha)
    release = ClassSwap(model).apply(before, seed=seed)
    made = release.data
    assert made.frame["ill"].sort().equals(before.frame["ill"].sort())

    def broken(file):
        shares = file.frame.group_by("home").agg(top=pl.col("ill").unique_counts().max() / pl.len())
        return set(shares.filter(pl.col("top") > alpha + 1e-9)["home"])

    assert broken(made) <= broken(before)
    assert bool(broken(made)) == bool(release.log[0].parameters["still_broken"])


@pytest.mark.parametrize("method", ["swap", "measure"])
def test_values_to_protect_are_read_as_the_column_holds_them_or_refused(method):
    days = pl.Series([date(2020, 1, 1 + at % 3) for at in range(30)])
    people = Microdata(pl.DataFrame({"home": [at // 10 for at in range(30)], "day": days}), keys="home")

    def ask(values):
        if method == "swap":
            return (
                ClassSwap(AlphaK("day", 0.9, values=values)).apply(people, seed=1).data.frame["day"].to_list()
            )
        return risk.alpha_k(people, sensitive="day", values=values).value

    assert ask(("2020-01-01",)) == ask((date(2020, 1, 1),))
    for strange in (("^", "."), (True,), (3 + 2j,)):
        with pytest.raises(ParameterError, match="values"):
            ask(strange)
