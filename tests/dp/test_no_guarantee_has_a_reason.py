"""Where nothing is guaranteed it is said why, at every door of every method that has an epsilon."""

from __future__ import annotations

import json
from dataclasses import fields

import numpy as np
import polars as pl
import pytest
import tomli_w
from private_releases import GENERATORS, SMALL, TABLES, TREATMENTS, WITHOUT_ANY, counted
from typer.testing import CliRunner

from discreet import Microdata, synth, tables
from discreet.cli import app
from discreet.workflow import document_release

pytestmark = pytest.mark.filterwarnings("ignore::discreet.core.errors.DiscreetWarning")
PAIR = pl.DataFrame({"a": np.arange(60) % 17, "b": np.arange(60) % 13 + 0.5})
SWITCH = {"laplace_switch": True, "epsilon": 1.0, "bounds": {"a": [0, 20], "b": [0, 20]}}
MADE = {
    **{name: (made_of, plan) for name, (_, made_of, plan) in GENERATORS.items()},
    "all-others": (lambda _: Microdata(PAIR), lambda: synth.AllOthers(**SWITCH)),
    "pmse-mechanism by particles": (
        GENERATORS["pmse-mechanism"][1],
        lambda: synth.PMSEMechanism(
            1.0, prior={"age": (0, 100), "hours": (0, 50)}, depth=1, particles=20, steps=20
        ),
    ),
    "bayesian-network without noise": (GENERATORS["bayesian-network"][1], synth.BayesianNetwork),
}
LAWS = {
    "multinomial-dirichlet-synthesis": lambda: tables.MultinomialDirichletSynthesis(epsilon=3.0, domain="public"),
    "negative-binomial-synthesis": lambda: tables.NegativeBinomialSynthesis(alpha=60, epsilon=1.0, domain="public"),
    "poisson-inverse-gaussian-synthesis": lambda: tables.PoissonInverseGaussianSynthesis(alpha=60, domain="public"),
}  # fmt: skip


def test_every_method_with_an_epsilon_is_asked():
    with_epsilon = {
        name
        for name, kind in {**synth.Synthesizer.known, **tables.TableProtection.known}.items()
        if "epsilon" in {own.name for own in fields(kind)} and kind.__module__.startswith("discreet.")
    }
    assert with_epsilon <= {*MADE, *TABLES, *LAWS}
    assert set(WITHOUT_ANY) == {"all-others", *LAWS}


@pytest.mark.parametrize("name", MADE)
def test_a_seeded_generator_says_why_when_fitted_printed_and_read_again(name, tmp_path):
    if name in ("dpgan", "pategan"):
        pytest.importorskip("torch")
    made_of, plan = MADE[name]
    fitted = plan().fit(made_of(SMALL), seed=1)
    assert fitted.guarantee is None
    assert fitted.private is None
    assert len(fitted.why_none) > 20
    assert fitted.why_none in repr(fitted)
    again = synth.load(fitted.save(tmp_path / "model"))
    assert again.guarantee is None
    assert len(again.why_none) > 20
    assert again.why_none in repr(again)


@pytest.mark.parametrize("name", [*TABLES, *LAWS])
def test_a_seeded_table_says_why_in_words_log_and_report(name, tmp_path):
    made = {**TABLES, **LAWS}[name]().apply(counted(SMALL), seed=1)
    assert made.guarantee is None
    assert len(made.why_none) > 20
    assert made.why_none in str(made)
    assert made.to_dict()["why_none"] == made.why_none
    assert made.why_none[:20] in made.to_html(tmp_path / "a.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TREATMENTS)
def test_a_seeded_treatment_says_why_in_words_log_and_report(name, tmp_path):
    data = Microdata(SMALL.select("sex", "job"), keys=["sex", "job"])
    made = TREATMENTS[name]().apply(data, seed=1)
    assert made.guarantee is None
    assert made.why_none in str(made)
    assert made.to_dict()["why_none"] == made.why_none
    assert made.why_none in made._repr_html_()
    report = document_release(data, made, path=tmp_path / "a.html")
    assert made.why_none in str(report)
    assert made.why_none[:20] in (tmp_path / "a.html").read_text(encoding="utf-8")


def test_the_laplace_switch_says_at_every_door_that_it_is_not_private(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PAIR.write_csv("pair.csv")
    (tmp_path / "plan.toml").write_text(
        tomli_w.dumps({"synthesizer": "all-others", **SWITCH}), encoding="utf-8"
    )
    asked = ["synthesize", "pair.csv", "--plan", "plan.toml", "--out", "made.csv", "--overwrite"]
    said = CliRunner().invoke(app, [*asked, "--model", "model", "--save-plan", "kept.toml"])
    assert said.exit_code == 0, said.output
    assert "No guarantee: the Laplace switch is not differentially private" in " ".join(said.output.split())
    told = json.loads(CliRunner().invoke(app, [*asked, "--json"]).output)
    assert told["guarantee"] is None
    assert "Laplace switch" in told["why_none"]
    again = CliRunner().invoke(app, ["synthesize", "--from-model", "model", "--out", "again.csv"])
    assert "Laplace switch is not differentially private" in " ".join(again.output.split())
    kept = (tmp_path / "kept.toml").read_text(encoding="utf-8")
    assert "# No guarantee: the Laplace switch" in kept
    assert synth.load_plan(tmp_path / "kept.toml") == synth.load_plan(tmp_path / "plan.toml")


@pytest.mark.parametrize("asked", ["protect", "synthesize", "table"])
def test_a_seed_at_the_command_line_is_said_to_void_the_guarantee(asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SMALL.write_csv("people.csv")
    (tmp_path / "sex.csv").write_text("child,parent\nf,Total\nm,Total\n", encoding="utf-8")
    step = '{treatment = "sample-and-anonymize", epsilon = 2.0, delta = 1e-3, sampling_rate = 0.3}'
    domain = "domain={sex=['f', 'm'], job=['cook', 'clerk', 'judge'], age=[0, 100]}"
    command = {
        "protect": ["protect", "people.csv", "--keys", "sex", "--step", step],
        "synthesize": ["synthesize", "people.csv", "--method", "mst", "--epsilon", "1", "--set", domain],
        "table": ["table", "protect", "people.csv", "--table", "sex", "--method", "noisy-counts", "--set",
                  "epsilon=1", "--set", "domain='public'", "--hierarchy", "sex=sex.csv", "--zeros"],
    }[asked]  # fmt: skip
    made = CliRunner().invoke(app, [*command, "--seed", "1", "--out", "made.csv"])
    assert made.exit_code == 0, made.output
    assert "it was drawn from a seed" in " ".join(made.output.split())
