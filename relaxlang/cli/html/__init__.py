"""`--emit=html`: one file that shows a compilation in a browser, offline.

In: a `Compilation`. Out: the text of a page. Its parts: the passes with time, size and a side-by-side diff of each
(`stages`); the graph of a module (`graph`); the memory of each function over time (`analysis.memory_report`); each
kernel as TensorIR, LLVM IR and assembly, linked line by line (`code`); with `--run` the time of each kernel
(`profile`). `page` puts them together with `report.css` and
`report.js`.
"""
