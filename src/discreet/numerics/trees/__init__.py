"""Trees on coded columns, grown quickly: shared by `discreet.synth` (donors) and `discreet.utility` (propensity).

Learn a `Feature` for each predictor, `encode` the columns, grow a `Tree`, and ask it for leaves or donors.
"""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
