"""From a sample to its population: estimators of population risk."""
