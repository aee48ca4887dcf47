"""``model.toml``: what an analyst wants fitted, and where the sites are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.core.errors import InputError, ParameterError, need_known
from discreet.core.files.untrusted import read_toml
from discreet.federated.covariance_models import CovarianceModel, factor_model, latent_growth, saturated
from discreet.federated.layouts import Group, Layout, begun_by_another
from discreet.federated.messages import MAIN
from discreet.federated.remote_transport import SitesOnNetwork

_MODELS = (
    "latent-growth", "factor", "saturated", "logistic", "poisson", "counts", "noisy-counts", "rank",
)  # fmt: skip
_FIT = {"mode", "noise_scale", "max_evaluations", "margin", "optimizer", "tol", "chunk_rows", "evaluations", "hessian",
        "timeout"}  # fmt: skip


class ModelFile:
    """A model file, read and checked.

    Attributes
    ----------
    sites
        Addresses by site.
    layout
        Who holds what.
    kind
        The model.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        given = read_toml(self.path, "model")
        tables = ["analyst", "sites", "layout", "model", "fit"]
        need_known(given, tables, before=f"{self.path.name}: ", kind=ParameterError)
        try:
            self.analyst = {
                name: self.path.parent / given["analyst"][name]
                for name in ("certificate", "key", "authority")
            }
            self.sites = {str(name): str(address) for name, address in given["sites"].items()}
            self.layout_kind = str(given["layout"]["kind"])
            groups = given["layout"]["groups"] if self.layout_kind == "complex" else [given["layout"]]
            self.groups = [(str(group.get("block", MAIN)), _columns(group["columns"])) for group in groups]
            self.model = dict(given["model"])
            self.kind = str(self.model.pop("kind"))
            self.settings = dict(given.get("fit", {}))
        except KeyError as error:
            raise InputError(f"{self.path.name} lacks the setting {error}.") from error
        except (TypeError, AttributeError, ValueError) as error:
            raise InputError(f"{self.path.name} holds a setting of the wrong kind.") from error
        self._need_known("model", [self.kind], _MODELS, what="kind")
        self._need_known("fit", self.settings, sorted(_FIT))
        if not {name for _, columns in self.groups for name in columns} <= set(self.sites):
            raise ParameterError(
                f"{self.path.name}: the columns in [layout] must name sites of [sites]. A site without columns may "
                "deal masks."
            )
        self.layout = self._layout()

    def fit(self, *, progress: bool = False) -> Any:
        """Reach the sites and fit the model."""
        with SitesOnNetwork(
            self.sites, **self.analyst, timeout=float(self.settings.get("timeout", 60.0))
        ) as transport:
            return self.fit_over(transport, progress=progress)

    def fit_over(self, transport: Any, *, progress: bool = False) -> Any:
        """Fit over a transport that reaches the sites."""
        from discreet.federated.counts_over_sites import assess, noisy_counts_over_sites
        from discreet.federated.generalized_linear import regression_over_sites
        from discreet.federated.ranks_over_sites import rank_over_sites
        from discreet.federated.secure_mle import SecureMLE

        if self.kind == "counts":
            return assess(
                self.layout, self.model.get("levels", {}), k=int(self.model.get("k", 3)), transport=transport
            )
        if self.kind == "noisy-counts":
            levels, epsilon = self._needed("levels", "epsilon")
            return noisy_counts_over_sites(self.layout, levels, epsilon=float(epsilon), transport=transport)
        if self.kind == "rank":
            (column,) = self._needed("column")
            return rank_over_sites(self.layout, str(column), transport=transport, **self._rank_options())
        if self.kind in ("logistic", "poisson"):
            y, x = self._needed("y", "x")
            kind: Any = self.kind
            explained = [str(x)] if isinstance(x, str) else [str(one) for one in x]
            return regression_over_sites(self.layout, str(y), explained, family=kind, transport=transport)
        options = {name: value for name, value in self.settings.items() if name not in ("hessian", "timeout")}
        if "evaluations" in options:
            options["evaluations"] = self.path.parent / options["evaluations"]
        secure = SecureMLE(self.layout, transport=transport, **options)
        hessian: Any = self.settings.get("hessian", "observed")
        return secure.fit(self._model(), hessian=hessian, progress=progress)

    def _layout(self) -> Layout:
        if self.layout_kind == "horizontal":
            ((_, columns),) = self.groups
            return Layout("horizontal", tuple(Group((name,), (own,)) for name, own in columns.items()))
        used: set[str] = set()
        made = []
        for block, columns in self.groups:
            names = begun_by_another(list(columns), used)
            made.append(Group(tuple(names), tuple(columns[name] for name in names), block))
        if self.layout_kind == "vertical":
            return Layout("vertical", tuple(made))
        if self.layout_kind == "complex":
            return Layout("complex", tuple(made))
        raise ParameterError(
            f"{self.path.name}, [layout]: kind must be 'vertical', 'horizontal' or 'complex'."
        )

    def _need_known(
        self, table: str, names: Iterable[str], known: Sequence[str], *, what: str = "setting"
    ) -> None:
        need_known(names, known, what=what, before=f"{self.path.name}, [{table}]: ", kind=ParameterError)

    def _needed(self, *names: str) -> list[Any]:
        for name in names:
            if name not in self.model:
                raise InputError(f"{self.path.name}, [model] of kind '{self.kind}' must name {name}.")
        return [self.model[name] for name in names]

    def _rank_options(self) -> dict[str, Any]:
        given = {name: value for name, value in self.model.items() if name != "column"}
        known = ("rank", "share", "domain", "precision")
        self._need_known("model", given, known)
        if "domain" in given:
            given["domain"] = tuple(given["domain"])
        return given

    def _model(self) -> CovarianceModel:
        options = dict(self.model)
        try:
            if self.kind == "latent-growth":
                return latent_growth(int(options.pop("p", len(self.layout.variables))), **options)
            if self.kind == "factor":
                return factor_model(options.pop("loadings"), **options)
            return saturated(len(self.layout.variables), names=self.layout.variables)
        except (TypeError, KeyError) as error:
            raise ParameterError(
                f"{self.path.name}, [model]: settings that '{self.kind}' does not have."
            ) from error


def _columns(given: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {str(name): tuple(str(one) for one in own) for name, own in given.items()}
