"""What is true of a program: who uses what, what has side effects, what is well formed.

In: modules and functions. Out: facts; nothing is changed. Read `uses`, `purity`, `well_formed`.
"""
