from discreet.synth.distributions.draws import Draws as Draws
from discreet.synth.distributions.families import FittedFamily as FittedFamily
from discreet.synth.distributions.families import fit_family as fit_family
from discreet.synth.distributions.families import fit_sample as fit_sample
from discreet.synth.distributions.families import from_moments as from_moments
from discreet.synth.distributions.inversion_sampling import conditional_inverse as conditional_inverse
from discreet.synth.distributions.inversion_sampling import discrete_inverse as discrete_inverse
from discreet.synth.distributions.inversion_sampling import (
    discrete_inverse_unbounded as discrete_inverse_unbounded,
)
from discreet.synth.distributions.inversion_sampling import inverse_transform as inverse_transform
from discreet.synth.distributions.rejection_sampling import accept_reject as accept_reject
from discreet.synth.distributions.rejection_sampling import condition as condition
from discreet.synth.distributions.rejection_sampling import covariance_root as covariance_root
from discreet.synth.distributions.rejection_sampling import mixture as mixture
from discreet.synth.distributions.rejection_sampling import multivariate_normal as multivariate_normal
from discreet.synth.distributions.rejection_sampling import transform as transform
from discreet.synth.distributions.resampled_records import bootstrap as bootstrap
from discreet.synth.distributions.resampled_records import closeness as closeness
from discreet.synth.distributions.resampled_records import interpolate as interpolate
from discreet.synth.distributions.resampled_records import segment as segment
from discreet.synth.distributions.resampled_records import smote as smote
