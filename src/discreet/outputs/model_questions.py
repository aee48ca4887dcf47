"""What a session is asked about relations and models: correlations, ratios, tests, regressions and other fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.microdata import Microdata
from discreet.outputs import modeling, relating
from discreet.outputs.output import Output
from discreet.outputs.recording import Recorder


def owner_of(data: Microdata) -> str | None:
    """Who a record belongs to, by the roles: what is counted are people (or firms), not records."""
    return data.roles.person or data.roles.contributor


class ModelQuestions(Recorder):
    """Relations and models whose disclosure risk is checked as they are made; `Session` adds the tables."""

    def correlation(
        self,
        columns: Sequence[str],
        data: Any = None,
        *,
        method: str = "pearson",
        name: str | None = None,
        comment: str = "",
    ) -> Output:
        """Correlate variables pair by pair: ``pearson``, ``spearman`` or ``kendall``."""
        file = self._file(data)
        return self._record(
            relating.correlate(file, list(columns), self.policy, method=method, subject=owner_of(file)),
            file,
            name,
            comment,
        )

    def odds_ratio(
        self,
        exposure: str | None = None,
        outcome: str | None = None,
        data: Any = None,
        *,
        counts: Any = None,
        where: Mapping[str, Any] | None = None,
        show_counts: bool = False,
        name: str | None = None,
        comment: str = "",
    ) -> Output:
        """Compute an odds ratio from two columns with two values each, or from ``counts=[[a, b], [c, d]]``."""
        return self._ratio(exposure, outcome, data, counts, where, show_counts, name, comment, risk=False)

    def risk_ratio(
        self,
        exposure: str | None = None,
        outcome: str | None = None,
        data: Any = None,
        *,
        counts: Any = None,
        where: Mapping[str, Any] | None = None,
        show_counts: bool = False,
        name: str | None = None,
        comment: str = "",
    ) -> Output:
        """Compute a risk ratio: the risk of the first outcome, first row over second."""
        return self._ratio(exposure, outcome, data, counts, where, show_counts, name, comment, risk=True)

    def test(
        self,
        kind: str,
        *columns: str,
        data: Any = None,
        show_counts: bool = False,
        name: str | None = None,
        comment: str = "",
    ) -> Output:
        """Run a test: t, welch, paired-t, mann-whitney, wilcoxon, ks, anova, kruskal, levene, shapiro, chi2, fisher.

        Name the variable first and the group column last. ``show_counts`` prints group counts, which are then checked.
        """
        file = self._file(data)
        draft = relating.significance_table(
            kind, file, columns, self.policy, show_counts=show_counts, subject=owner_of(file)
        )
        return self._record(draft, file, name, comment)

    def ols(self, formula: str, data: Any = None, **options: Any) -> Output:
        """Fit a linear regression, ``"pay ~ age + C(sex)"``. Options as for `model`."""
        return self.model("ols", formula, data, **options)

    def logit(self, formula: str, data: Any = None, **options: Any) -> Output:
        """Fit a logistic regression. Options as for `model`."""
        return self.model("logit", formula, data, **options)

    def probit(self, formula: str, data: Any = None, **options: Any) -> Output:
        """Fit a probit regression. Options as for `model`."""
        return self.model("probit", formula, data, **options)

    def poisson(self, formula: str, data: Any = None, **options: Any) -> Output:
        """Fit a Poisson regression. Options as for `model`."""
        return self.model("poisson", formula, data, **options)

    def model(
        self,
        family: str,
        formula: str,
        data: Any = None,
        *,
        subject: str | None = None,
        where: Mapping[str, Any] | None = None,
        shown: Sequence[str] = (),
        name: str | None = None,
        comment: str = "",
        **options: Any,
    ) -> Output:
        """Fit any model that statsmodels has a formula for: ols, wls, glm, logit, probit, mnlogit, poisson, ….

        ``shown`` names what is shown beside the coefficients: residuals or predictions fail. Other options go to
        statsmodels. ``.result`` is the fitted model; what would go out are coefficients and fit statistics.
        """
        file = self._file(data)
        owner = subject or owner_of(file)
        draft = modeling.fit(
            family,
            formula,
            file,
            self.policy,
            subject=owner,
            where=where,
            options=options,
            shown=shown,
        )
        return self._record(draft, None, name, comment)

    def fitted(
        self, model: Any, *, shown: Sequence[str] = (), name: str | None = None, comment: str = ""
    ) -> Output:
        """Check a model that statsmodels has already fitted."""
        draft = modeling.checked_statsmodels(model, self.policy, shown=shown)
        return self._record(draft, None, name, comment)

    def sklearn(
        self,
        model: Any,
        X: Any,
        y: Any = None,
        *,
        others: tuple[Any, Any] | None = None,
        shown: Sequence[str] = (),
        name: str | None = None,
        comment: str = "",
    ) -> Output:
        """Check a fitted scikit-learn model: linear ones as models, trees as tables, the rest by what they hold.

        Records that a model carries and leaves of few people are refused (`discreet.attack.model_structure`); what
        else it may have learned is for a human. With ``others``, the records and outcomes of people it was not
        trained on, it is attacked as well (`discreet.attack.model_membership`).
        """
        draft = modeling.checked_sklearn(model, X, y, self.policy, shown=shown, others=others)
        return self._record(draft, None, name, comment)

    def _ratio(  # noqa: PLR0917
        self,
        exposure: str | None,
        outcome: str | None,
        data: Any,
        counts: Any,
        where: Mapping[str, Any] | None,
        show_counts: bool,
        name: str | None,
        comment: str,
        *,
        risk: bool,
    ) -> Output:
        file = None if counts is not None else self._file(data)
        draft = relating.ratio_table(
            file,
            self.policy,
            rows=exposure,
            columns=outcome,
            counts=counts,
            where=where,
            subject=owner_of(file) if file is not None else None,
            risk=risk,
            show_counts=show_counts,
        )
        return self._record(draft, file, name, comment)
