"""Do analyses of the release give the answers of the original? Combining rules, regressions, prediction."""

from discreet.utility.fits.combining import Combined, combine
from discreet.utility.fits.comparing import compare_fits, compare_model
from discreet.utility.fits.model_fits import ModelFit, fit
from discreet.utility.fits.overlapping import ellipsoid_overlap, interval_overlap
from discreet.utility.fits.prediction import train_on_synthetic

__all__ = [
    "Combined",
    "ModelFit",
    "combine",
    "compare_fits",
    "compare_model",
    "ellipsoid_overlap",
    "fit",
    "interval_overlap",
    "train_on_synthetic",
]
