"""What could somebody do with what is about to be released? Attacks, run before an intruder runs them.

Risk measures count; attacks try. Every attack is a function of what the intruder has, and answers with a `Measure`: how
often it succeeded against the people in the file, how often the same attack succeeds against people who are not in it
(the holdout), how often a blind guess does, and the risk that is left: the part of the successes that only the release
explains (`discreet.attack.success`).
"""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
