"""Roles from the file beside the data."""

from __future__ import annotations

import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.core.errors import ColumnError, InputError
from discreet.core.roles import Roles
from discreet.io import load_roles, read, save_roles, sidecar_path
from discreet.io.sidecar import load_sidecar


@pytest.fixture
def survey(tmp_path):
    (tmp_path / "survey.csv").write_text("age;sex;pay\n30;f;1\n31;m;-8\n")
    return tmp_path / "survey.csv"


@pytest.mark.parametrize("name", ["survey.csv", "survey.csv.gz", "survey.parquet", "survey.sav"])
def test_the_sidecar_has_the_name_of_the_data(name):
    assert sidecar_path(f"folder/{name}").as_posix() == "folder/survey.roles.toml"


def test_the_sidecar_is_used_when_no_roles_are_given(survey):
    sidecar_path(survey).write_text(
        '[roles]\nkeys = ["age"]\nsensitive = "pay"\n[reading]\nmissing = ["-8"]\n'
    )
    data = read(survey)
    assert data.roles == Roles.of(keys="age", sensitive="pay")
    assert data.frame.collect()["pay"].to_list() == [1, None]
    assert read(survey, keys="sex").roles == Roles.of(keys="sex", sensitive="pay")
    assert read(survey, keys=["age", "pay"]).roles == Roles.of(keys=["age", "pay"])
    assert read(survey, keys=["age", "pay"], sensitive="sex").roles == Roles.of(
        keys=["age", "pay"], sensitive="sex"
    )
    assert read(survey, roles={"keys": ["sex"]}).roles == Roles.of(keys="sex")
    assert read(survey, missing="1").frame.collect()["pay"].to_list() == [None, -8]


def test_roles_come_as_mapping_roles_or_path_and_keywords_go_first(survey, tmp_path):
    other = save_roles(Roles.of(keys=["age", "sex"], sensitive="pay"), tmp_path / "other.toml")
    for roles in (other, str(other), load_roles(other), load_roles(other).to_dict()):
        assert read(survey, roles=roles).roles == Roles.of(keys=["age", "sex"], sensitive="pay")
        assert read(survey, roles=roles, keys="age").roles == Roles.of(keys="age", sensitive="pay")


def test_hierarchies_lie_relative_to_the_sidecar(tmp_path):
    file = tmp_path / "survey.roles.toml"
    file.write_text('[hierarchies]\nage = "steps/age.csv"\n')
    assert load_sidecar(file).hierarchies == {"age": tmp_path / "steps" / "age.csv"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[roles]\nkey = ["age"]\n', "'key'. Did you mean 'keys'.*survey.roles.toml"),
        ("[roles]\nkeys = 3\n", "survey.roles.toml.*roles.keys"),
        ('[roles]\nkeys = ["age", 3]\n', "survey.roles.toml.*'keys'"),
        ('[roles]\nweight = ["a", "b"]\n', "survey.roles.toml.*'weight'"),
        ("[role]\n", "'role'. Did you mean 'roles'.*survey.roles.toml"),
        ('keys = ["age"]\n', "'keys'.*survey.roles.toml"),
        ("[reading]\nseparater = ';'\n", "Did you mean 'separator'.*survey.roles.toml"),
        ("[hierarchies]\nage = 3\n", "survey.roles.toml.*hierarchies.age"),
        ("[roles\n", "survey.roles.toml' is not valid TOML.*line 1"),
    ],
)
def test_an_error_names_the_file_and_the_key(survey, text, words):
    sidecar_path(survey).write_text(text)
    with pytest.raises(InputError, match=words):
        read(survey)


def test_a_role_of_a_column_that_is_not_there_is_refused(survey):
    sidecar_path(survey).write_text('[roles]\nkeys = ["agee"]\n')
    with pytest.raises(ColumnError, match="Did you mean 'age'"):
        read(survey)
    with pytest.raises(InputError, match="no roles file"):
        read(survey, roles="nowhere.toml")


def test_saved_roles_are_not_overwritten_unless_asked(survey):
    target = save_roles(read(survey, keys="age"), sidecar_path(survey))
    with pytest.raises(InputError, match="already exists"):
        save_roles(Roles(), target)
    assert load_roles(save_roles(Roles.of(keys="sex"), target, overwrite=True)).keys == ("sex",)


names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1)


@settings(
    max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(columns=st.lists(names, unique=True, min_size=1), weight=names)
def test_any_column_name_comes_back_from_a_sidecar(tmp_path, columns, weight):
    roles = Roles.of(keys=columns, weight=weight)
    assert load_roles(save_roles(roles, tmp_path / "x.roles.toml", overwrite=True)) == roles
