"""Plans that a statistician wrote by hand for real files: each meets its template, and costs what its table says."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import typer
from verdicts.people_files import stays
from workflow.test_suggest_hospital import hospital

import discreet
from discreet import Microdata
from discreet.cli.printing import end_by
from discreet.core.verdicts import Verdict
from discreet.protect import Band, DropIdentifiers, Generalize, Plan, Recode, Round, TopBottomCode
from discreet.utility import dependence
from discreet.workflow import document_plan

DATA = os.environ.get("DISCREET_TEST_DATA")
pytestmark = [
    pytest.mark.skipif(not DATA, reason="DISCREET_TEST_DATA names no folder with the test data"),
    pytest.mark.filterwarnings("ignore::discreet.core.errors.DiscreetWarning"),
]

PLANS = Path(__file__).parent / "expert_plans"
POLICIES = {"scientific": "scientific-use-file", "public": "public-use-file"}
FILES = {
    "SD2011": "SD2011.csv",
    "eusilcS": "eusilcS.csv.gz",
    "testdata": "testdata.csv",
    "ghanaS": "ghanaS.csv.gz",
    "ma2019": "nist-dce/ma2019.csv",
    "bank": "tabular/bank_marketing.csv.gz",
}
COARSER = (Band, DropIdentifiers, Generalize, Recode, Round, TopBottomCode)
SLOW = {"adult", "bank", "ghanaS", "ma2019", "testdata"}
CODES = 12  # whole numbers of so few values are codes or counts
SOME = 0.05  # below, a correlation is hardly told from none


def expert_data(name: str, folder: Path) -> Microdata:
    """Read a file as its roles file says: the ones that tests draw are written to the folder first."""
    roles = PLANS / f"{name}.roles.toml"
    if name == "hospital":
        hospital().write_csv(folder / "hospital.csv")
        data = discreet.read(folder / "hospital.csv", roles=roles, missing=["-99"])
    elif name == "stays":
        stays(np.random.default_rng(8), 2_000).write_csv(folder / "stays.csv")
        data = discreet.read(folder / "stays.csv", roles=roles)
    elif name == "adult":
        discreet.datasets.adult().frame.write_csv(folder / "adult.csv")
        data = discreet.read(folder / "adult.csv", roles=roles)
    else:
        gaps = {"missing": ["N"]} if name == "ma2019" else {}
        data = discreet.read(Path(str(DATA)) / FILES[name], roles=roles, **gaps)
    return data.with_frame(discreet.engine.whole_frame(data))


def changed_relations(data: Microdata, plan: Plan) -> tuple[float, int]:
    """Hold relations of the release against the original in the same categories: largest change, signs turned."""
    in_order = Plan([step for step in plan.steps if step.name != "reorder-records"])
    released = in_order.apply(data, seed=1).data
    coarser = Plan([step for step in plan.steps if isinstance(step, COARSER)]).apply(data, seed=1).data.frame
    kinds = dict(released.frame.schema)
    numbers = [name for name, kind in kinds.items() if kind.is_numeric() and data.schema[name].is_numeric()]
    codes = [name for name in numbers if data.frame[name].n_unique() <= CODES]
    before = coarser.with_columns(data.frame.select(name for name in numbers if name not in codes))
    found = dependence(data.with_roles(keys=()).with_frame(before), released, categorical=codes)
    turned = found.detail["pairs"].filter(
        (pl.col("before") * pl.col("after") < 0)
        & (pl.max_horizontal(pl.col("before", "after").abs()) >= SOME)
    )
    return float(found.figures["largest_change"]), turned.height


def exit_code(verdict: Verdict) -> int:
    """Say how the command would end."""
    try:
        end_by([verdict])
    except typer.Exit as ended:
        return ended.exit_code
    return 0


def table() -> list[tuple[str, str, float, float, str, int]]:
    """Read the table of the README."""
    lines = (PLANS / "README.md").read_text(encoding="utf-8").splitlines()
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")
    ]
    return [
        (row[0].strip("`"), row[1], float(row[2]) / 100, float(row[3]), row[4], int(row[5])) for row in cells
    ]


CASES = [
    pytest.param(*row, marks=[pytest.mark.slow] if row[0] in SLOW else [], id=f"{row[0]}-{row[1]}")
    for row in table()
]


@pytest.mark.parametrize(("name", "use", "loss", "change", "outcome", "code"), CASES)
def test_an_expert_plan_meets_its_template_at_the_cost_that_is_told(
    name, use, loss, change, outcome, code, tmp_path
):
    data = expert_data(name, tmp_path)
    plan = Plan.load(PLANS / f"{name}.{use}.toml")
    report = document_plan(data, plan, POLICIES[use], seed=1)
    failed = [check.reason for check in report.verdict.checks if not check.passed]
    assert (report.verdict.outcome, exit_code(report.verdict)) == (outcome, code) == ("met", 0), failed
    assert not report.verdict.unjudged
    assert report.cost.value == pytest.approx(loss, abs=0.002)
    largest, turned = changed_relations(data, plan)
    assert (largest, turned) == (pytest.approx(change, abs=0.005), 0)


def test_every_plan_has_a_line_in_the_table_and_every_line_a_plan():
    plans = {tuple(path.stem.split(".")) for path in PLANS.glob("*.toml") if ".roles" not in path.stem}
    assert plans == {(name, use) for name, use, *_ in table()}
    assert {name for name, _ in plans} == {path.name.split(".")[0] for path in PLANS.glob("*.roles.toml")}
