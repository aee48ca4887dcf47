"""How long do the tables of a bank take, and do they hang together? All eight tables of Berka, or as many as it had.

    DISCREET_TEST_DATA=PATH python bench/linked_tables.py [--transactions 1056320] [--strategy relational] [--compare]

The file here has the first 49,102 transactions. ``--transactions`` blows them up: every account gets as many as a gamma
law gives it, each a copy of a real one at a date between the opening of the account and the end of 1998. Printed are
processor seconds, the largest memory, orphans, broken rules, and children per parent before and after. ``--compare``
holds the strategies side by side instead: tables drawn together, each by itself, and, for accounts with a loan, both
joined to one record.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import resource
import time
from pathlib import Path

import numpy as np
import polars as pl

from discreet import utility
from discreet.synth import LinkedTables, Relational, Schema

FOLDER = Path(os.environ.get("DISCREET_TEST_DATA", ".")) / "berka"
AFTER_OPENING = ["date >= `account.date`"]
SCHEMA = {
    "district": {"key": "A1", "public": True},
    "client": {"key": "client_id", "parents": {"district_id": "district"}},
    "account": {"key": "account_id", "parents": {"district_id": "district"}},
    "disp": {"key": "disp_id", "parents": {"client_id": "client", "account_id": "account"}},
    "loan": {"key": "loan_id", "parents": {"account_id": "account"}, "rules": AFTER_OPENING},
    "order": {"key": "order_id", "parents": {"account_id": "account"}, "leave_out": ["account_to"]},
    "card": {"key": "card_id", "parents": {"disp_id": "disp"}},
    "trans": {
        "key": "trans_id",
        "parents": {"account_id": "account"},
        "order": "date",
        "rules": AFTER_OPENING,
        "leave_out": ["account"],
    },
}


def bank(transactions: int | None) -> dict[str, pl.DataFrame]:
    """Read the tables; transactions from before the opening of their account are left out."""
    tables = {}
    for name in SCHEMA:
        ending = ".csv.gz" if name == "trans" else ".csv"
        frame = pl.read_csv(FOLDER / f"{name}{ending}", infer_schema_length=None)
        if "date" in frame.columns:
            frame = frame.with_columns(pl.col("date").cast(pl.String).str.to_date("%y%m%d"))
        tables[name] = frame
    opened = tables["account"].select("account_id", pl.col("date").alias("opened"))
    known = tables["trans"].join(opened, on="account_id").filter(pl.col("date") >= pl.col("opened"))
    tables["trans"] = known.drop("opened")
    if transactions is not None:
        tables["trans"] = blown_up(tables["trans"], opened, transactions)
    return tables


def blown_up(trans: pl.DataFrame, opened: pl.DataFrame, wanted: int) -> pl.DataFrame:
    """Give every account as many transactions as a gamma law says, at dates after its opening."""
    rng = np.random.default_rng(1)
    sizes = rng.gamma(2.0, wanted / opened.height / 2, opened.height).astype(np.int64) + 1
    copies = trans[rng.integers(trans.height, size=int(sizes.sum()))]
    begins = opened["opened"].gather(np.repeat(np.arange(opened.height), sizes))
    left = (pl.lit(dt.date(1998, 12, 31)) - pl.col("begins")).dt.total_days()
    share = pl.Series("share", rng.random(copies.height))
    return (
        copies.with_columns(
            pl.Series("account_id", np.repeat(opened["account_id"].to_numpy(), sizes)),
            pl.Series("trans_id", np.arange(1, copies.height + 1)),
            begins.alias("begins"),
            share,
        )
        .with_columns(
            (pl.col("begins") + pl.duration(days=(left * pl.col("share")).cast(pl.Int64))).alias("date")
        )
        .drop("begins", "share")
    )


def compared(
    schema: Schema,
    tables: dict[str, pl.DataFrame],
    strategies: list[str],
    children: list[str],
    seeds: int = 1,
) -> None:
    """Print how far child tables, seen with the columns of their parents, are from the real ones, by strategy."""
    real = LinkedTables.of(schema, tables)
    beside = {name: real.beside(name) for name in children}
    for strategy in strategies:
        figures: dict[str, list[tuple[float, ...]]] = {name: [] for name in children}
        began = time.process_time()
        for seed in range(1, seeds + 1):
            made = LinkedTables(
                schema, Relational(schema, strategy=strategy).fit(real.tables, seed=seed).sample(seed=seed)
            )
            broken = float(utility.linked_keys(real, made).figures["rules_broken"])
            for name in children:
                own = made.beside(name)
                ranks = utility.rank_correlations(beside[name], own)
                apart = utility.table_propensity(beside[name], own).value
                figures[name].append((ranks.value, ranks.detail["pairs"]["change"].mean(), apart, broken))
        spent = (time.process_time() - began) / seeds
        for name, found in figures.items():
            middle, mean, apart, broken = np.mean(found, axis=0)
            error = np.std([own[2] for own in found], ddof=1) / np.sqrt(seeds) if seeds > 1 else 0.0
            print(
                f"{strategy:<12} {name:<8} {middle:8.4f} {mean:8.4f} {apart:8.4f} {error:7.4f} {broken:9,.2f} "
                f"{spent:6.1f}",
                flush=True,
            )


def compare_strategies(transactions: int | None) -> None:
    """Print two tables: the whole bank, and accounts with their loan, which can also be joined to one record."""
    tables = bank(transactions)
    print("                      change of ranks      pMSE  +-error    broken  CPU s")
    print("strategy     table      median     mean")
    children = ["disp", "loan", "order", "card", "trans"]
    compared(Schema.from_dict({"tables": SCHEMA}), tables, ["relational", "separate"], children)
    lent = tables["account"].join(tables["loan"].select("account_id").unique(), on="account_id")
    two = {"account": {"key": "account_id"}, "loan": SCHEMA["loan"]}
    print("accounts with a loan, means of 20 seeds")
    compared(
        Schema.from_dict({"tables": two}),
        {"account": lent, "loan": tables["loan"]},
        ["relational", "joined", "separate"],
        ["loan"],
        seeds=20,
    )


def main() -> None:
    """Fit, draw, measure, and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--transactions", type=int, default=None)
    options.add_argument("--strategy", choices=["relational", "separate"], default="relational")
    options.add_argument("--compare", action="store_true")
    chosen = options.parse_args()
    if chosen.compare:
        compare_strategies(chosen.transactions)
        return
    schema = Schema.from_dict({"tables": SCHEMA})
    real = LinkedTables.of(schema, bank(chosen.transactions))
    began = time.process_time()
    fitted = Relational(schema, strategy=chosen.strategy).fit(real.tables, seed=1)
    fit = time.process_time()
    made = LinkedTables(schema, fitted.sample(seed=1))
    done = time.process_time()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{real.rows:,} records: fitted in {fit - began:.0f} s, drawn in {done - fit:.0f} s (processor)")
    print(f"largest memory {memory:,.0f} MB; left out for the rules: {fitted.unplaced or 'none'}")
    found = utility.linked_keys(real, made)
    print(found.meaning)
    print(found.detail["links"])


if __name__ == "__main__":
    main()
