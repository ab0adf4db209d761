"""Importers: models of other frameworks as modules of Relax.

In: a model file, or a model in memory. Out: an `IRModule` whose `main` is the model. `onnx/` reads ONNX.
"""
