"""``model.toml``: what an analyst wants fitted, and where the sites are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet.errors import InputError, ParameterError, unknown_name
from discreet.federated.covariance_models import CovarianceModel, factor_model, latent_growth, saturated
from discreet.federated.layouts import Group, Layout
from discreet.federated.remote_transport import SitesOnNetwork
from discreet.files.toml_files import read_toml

_MODELS = ("latent-growth", "factor", "saturated", "logistic", "poisson", "counts")
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
        for name in given:
            if name not in ("analyst", "sites", "layout", "model", "fit"):
                raise ParameterError(
                    f"{self.path.name}: {unknown_name(name, ['analyst', 'sites', 'layout', 'model', 'fit'])}"
                )
        try:
            self.analyst = {
                name: self.path.parent / given["analyst"][name]
                for name in ("certificate", "key", "authority")
            }
            self.sites = {str(name): str(address) for name, address in given["sites"].items()}
            self.columns = {
                str(name): [str(one) for one in own] for name, own in given["layout"]["columns"].items()
            }
            self.layout_kind = str(given["layout"]["kind"])
            self.model = dict(given["model"])
            self.kind = str(self.model.pop("kind"))
            self.settings = dict(given.get("fit", {}))
        except KeyError as error:
            raise InputError(f"{self.path.name} lacks the setting {error}.") from error
        except (TypeError, AttributeError, ValueError) as error:
            raise InputError(f"{self.path.name} holds a setting of the wrong kind.") from error
        if self.kind not in _MODELS:
            raise ParameterError(
                f"{self.path.name}, [model]: {unknown_name(self.kind, _MODELS, what='kind')}"
            )
        for name in self.settings:
            if name not in _FIT:
                raise ParameterError(
                    f"{self.path.name}, [fit]: {unknown_name(name, sorted(_FIT), what='setting')}"
                )
        if set(self.columns) != set(self.sites):
            raise ParameterError(f"{self.path.name}: [layout.columns] must name the same sites as [sites].")
        self.layout = self._layout()

    def fit(self) -> Any:
        """Reach the sites and fit the model."""
        with SitesOnNetwork(
            self.sites, **self.analyst, timeout=float(self.settings.get("timeout", 60.0))
        ) as transport:
            return self.fit_over(transport)

    def fit_over(self, transport: Any) -> Any:
        """Fit over a transport that reaches the sites."""
        from discreet.federated.counting import assess
        from discreet.federated.generalized_linear import regression_over_sites
        from discreet.federated.secure_mle import SecureMLE

        if self.kind == "counts":
            return assess(
                self.layout, self.model.get("levels", {}), k=int(self.model.get("k", 3)), transport=transport
            )
        if self.kind in ("logistic", "poisson"):
            try:
                y, x = str(self.model["y"]), [str(one) for one in self.model["x"]]
            except (KeyError, TypeError) as error:
                raise InputError(f"{self.path.name}, [model] must name y and x.") from error
            kind: Any = self.kind
            return regression_over_sites(self.layout, y, x, family=kind, transport=transport)
        options = {name: value for name, value in self.settings.items() if name not in ("hessian", "timeout")}
        if "evaluations" in options:
            options["evaluations"] = self.path.parent / options["evaluations"]
        secure = SecureMLE(self.layout, transport=transport, **options)
        hessian: Any = self.settings.get("hessian", "observed")
        return secure.fit(self._model(), hessian=hessian)

    def _layout(self) -> Layout:
        if self.layout_kind == "vertical":
            group = Group(tuple(self.columns), tuple(tuple(own) for own in self.columns.values()))
            return Layout("vertical", (group,))
        if self.layout_kind == "horizontal":
            return Layout(
                "horizontal", tuple(Group((name,), (tuple(own),)) for name, own in self.columns.items())
            )
        raise ParameterError(f"{self.path.name}, [layout]: kind must be 'vertical' or 'horizontal'.")

    def _model(self) -> CovarianceModel:
        options = dict(self.model)
        try:
            if self.kind == "latent-growth":
                return latent_growth(int(options.pop("p", len(self.layout.variables))), **options)
            if self.kind == "factor":
                return factor_model(options.pop("loadings"), **options)
            return saturated(len(self.layout.variables))
        except (TypeError, KeyError) as error:
            raise ParameterError(
                f"{self.path.name}, [model]: settings that '{self.kind}' does not have."
            ) from error
