"""The version of relaxlang: of the package, and part of every key in the on-disk caches."""

__version__ = "0.1.0"
