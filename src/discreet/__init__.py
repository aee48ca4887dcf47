"""discreet: how risky is this data, how can it be protected, and what may be released.

The front door. Sub-packages and verbs are imported when they are first used, so that ``import discreet``
stays quick.

Examples
--------
>>> import discreet
>>> data = discreet.datasets.adult(keys=["age", "sex"], sensitive="income")
>>> discreet.risk.k_anonymity(data).value
1
"""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
