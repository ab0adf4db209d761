"""Relax as a language you can type."""

__version__ = "0.1.0"
