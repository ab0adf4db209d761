"""Back ends that relaxlang brings: libraries that compute parts of programs in its place.

`blas` takes matrix products, `onnx_runtime` whatever `onnx_export` can say in ONNX; each says what it takes by dataflow
patterns, and makes Relax functions that call the library by `R.call_dps_packed`. What is called lies in `runtime/`
(`blas`, `onnx_runtime`), so that saved programs run without the compiler. `measure` times programs for `PlaceByCost`.
`passes/back_end` is the protocol that they follow.
"""
