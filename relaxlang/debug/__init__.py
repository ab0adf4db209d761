"""Finding out what is wrong: with a pass, with a program, between two programs.

In: modules. Out: the first difference (`compare`), the first pass that changes a result (`check_passes`), a smaller
program that still shows a fault (`reduce`, by the steps of `shrink` and `shrink_tir`). `inputs` makes arguments up.
"""
