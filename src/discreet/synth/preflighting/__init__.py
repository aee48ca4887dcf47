"""Look at a file before it is synthesized: what would silently ruin the synthetic one?"""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
