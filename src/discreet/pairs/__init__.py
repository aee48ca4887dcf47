"""One notion of an original and a released file: when are their values the same?"""
