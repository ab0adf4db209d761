"""Building Relax in Python: struct-info inference of expressions, normal form.

In: expressions with operands that have their struct info. Out: bindings in normal form. Read `infer`, then `normalize`.
"""
