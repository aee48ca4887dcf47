"""Regressions under a privacy budget: quantiles and means given other columns."""

from discreet.dp.regression.check_loss import smoothed_check_loss
from discreet.dp.regression.linear_regression import linear_regression
from discreet.dp.regression.quantile_regression import quantile_regression

__all__ = ["linear_regression", "quantile_regression", "smoothed_check_loss"]
