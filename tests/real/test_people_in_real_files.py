"""Accounts with several orders, households of a survey, companies with several records: company is counted in them."""

import polars as pl

from discreet import Microdata, risk
from discreet.protect import KAnonymity, Mondrian, OptimalGeneralization
from discreet.tables import Table, Threshold, primary

KEYS = ["district_id", "frequency", "bank_to"]


def orders(test_data):
    """Standing orders of a bank (Berka): 6,471 of 3,758 accounts."""
    accounts = pl.read_csv(test_data / "berka" / "account.csv").select(
        "account_id", "district_id", "frequency"
    )
    given = pl.read_csv(test_data / "berka" / "order.csv")
    return given.join(accounts, on="account_id", how="left", maintain_order="left")


def test_orders_of_one_account_are_no_company_for_each_other(test_data):
    table = orders(test_data)
    sizes = table.group_by(KEYS).agg(accounts=pl.col("account_id").n_unique(), orders=pl.len())
    by_account = risk.k_anonymity(Microdata(table, keys=KEYS, person="account_id"))
    by_order = risk.k_anonymity(Microdata(table, keys=KEYS))
    alone = int((sizes["accounts"] == 1).sum())
    assert by_account.figures["unique_records"] == alone
    assert by_account.figures["records"] == sizes["accounts"].sum()
    assert by_account.figures["records_in_file"] == table.height
    # Orders make company that accounts do not have.
    assert by_order.figures["unique_records"] == (sizes["orders"] == 1).sum() < alone
    assert by_account.value == sizes["accounts"].min()
    share = sizes.filter(pl.col("accounts") < 3)["accounts"].sum() / sizes["accounts"].sum()
    assert by_account.figures["share_below_threshold"] == share


def test_a_treatment_gives_accounts_the_company_of_accounts(test_data):
    data = Microdata(orders(test_data), keys=KEYS, person="account_id")
    for treatment in (
        Mondrian(k=5),
        OptimalGeneralization([KAnonymity(5)], suppression_limit=0.1),
    ):
        released = treatment.apply(data, seed=1).data
        there = released.frame.filter(~pl.all_horizontal(pl.col(KEYS).is_null()))
        fewest = there.group_by(KEYS).agg(accounts=pl.col("account_id").n_unique())["accounts"].min()
        assert fewest >= 5
        assert risk.k_anonymity(released).value == fewest


def test_households_that_are_a_class_by_themselves_are_named(test_data):
    table = pl.read_csv(test_data / "eusilcS.csv.gz", infer_schema_length=None)
    keys = ["db040", "hsize", "rb090"]
    found = risk.k_anonymity(Microdata(table, keys=keys, household="db030"))
    classes = table.group_by(keys).agg(homes=pl.col("db030").n_unique(), people=pl.len())
    one = classes.filter((pl.col("homes") == 1) & (pl.col("people") > 1))
    assert found.figures["single_household_classes"] == one.height > 0
    assert found.figures["single_household_records"] == one["people"].sum()
    assert found.value == classes["people"].min()


def test_a_threshold_counts_companies_where_they_are_known(test_data):
    table = pl.read_csv(test_data / "ssb_magnitude1.csv")
    data = Microdata(table, contributor="company")
    cells = primary(Table.from_microdata(data, "geo*sector4", measure="value"), Threshold(3)).cells
    inner = table.group_by("geo", "sector4").agg(companies=pl.col("company").n_unique())
    small = set(inner.filter(pl.col("companies") < 3).select("geo", "sector4").rows())
    found = {row for row in cells.filter("primary").select("geo", "sector4").rows() if "Total" not in row}
    assert found == small
