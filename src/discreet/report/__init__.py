"""What a person reads: the HTML reports of assessments, comparisons and releases, and the pictures of their measures.

A report is one file that needs nothing else: no network, no fonts, no scripts from elsewhere.
"""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
