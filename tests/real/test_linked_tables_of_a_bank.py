"""The Berka tables: every key valid, children per parent kept, and dates in order."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import synth
from discreet.synth.table_schema import check_tables

SCHEMA = {
    "tables": {
        "district": {"key": "A1", "public": True},
        "client": {"key": "client_id", "parents": {"district_id": "district"}},
        "account": {"key": "account_id", "parents": {"district_id": "district"}},
        "disp": {"key": "disp_id", "parents": {"client_id": "client", "account_id": "account"}},
        "loan": {"key": "loan_id", "parents": {"account_id": "account"}, "rules": ["date >= `account.date`"]},
        "order": {"key": "order_id", "parents": {"account_id": "account"}, "leave_out": ["account_to"]},
        "card": {"key": "card_id", "parents": {"disp_id": "disp"}},
        "trans": {
            "key": "trans_id",
            "parents": {"account_id": "account"},
            "order": "date",
            "rules": ["date >= `account.date`"],
            "leave_out": ["account"],
        },
    }
}


def berka(folder):
    tables = {}
    for name in SCHEMA["tables"]:
        ending = ".csv.gz" if name == "trans" else ".csv"
        frame = pl.read_csv(folder / "berka" / f"{name}{ending}", infer_schema_length=None)
        if "date" in frame.columns:
            frame = frame.with_columns(pl.col("date").cast(pl.String).str.to_date("%y%m%d"))
        tables[name] = frame
    known = tables["account"].select("account_id", pl.col("date").alias("opened"))
    kept = tables["trans"].join(known, on="account_id")
    tables["trans"] = kept.filter(pl.col("date") >= pl.col("opened")).drop("opened")
    return tables


@pytest.mark.slow
def test_the_tables_of_a_bank_hang_together(test_data):
    tables = berka(test_data)
    made = synth.Relational(SCHEMA).fit(tables, seed=1).sample(seed=1)
    whole = {
        name: {k: v for k, v in own.items() if k != "leave_out"} for name, own in SCHEMA["tables"].items()
    }
    check_tables(synth.Schema.from_dict({"tables": whole}), made)
    for name, parent in (
        ("trans", "account"),
        ("disp", "account"),
        ("order", "account"),
        ("loan", "account"),
        ("card", "disp"),
    ):
        key = f"{parent}_id"
        real, drawn = (
            own[parent].join(own[name].group_by(key).len(), on=key, how="left")["len"].fill_null(0).to_numpy()
            for own in (tables, made)
        )
        assert abs(drawn.sum() / real.sum() - 1) < 0.02
        assert np.abs(np.quantile(drawn, [0.25, 0.5, 0.75]) - np.quantile(real, [0.25, 0.5, 0.75])).max() <= 1
    beside = made["trans"].join(made["account"].select("account_id", opened="date"), on="account_id")
    assert (beside["date"] >= beside["opened"]).all()
    assert (
        made["trans"].select((pl.col("date").diff().over("account_id") >= pl.duration(days=0)).all()).item()
    )
