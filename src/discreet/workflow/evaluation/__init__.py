"""The studies of the literature as one call: generators x data sets x seeds, all metrics, resumable and parallel."""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
