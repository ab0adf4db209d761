"""Passes on the graph level: operators to kernels, clean-up, normal form, closures."""
