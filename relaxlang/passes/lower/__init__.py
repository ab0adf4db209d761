"""From Relax to what the virtual machine runs: dataflow, destination passing, memory, shapes.

The minimum pipeline in its order: `to_non_dataflow`, `call_tir_rewrite`, `vm_memory_lower`, `vm_shape_lower`.
"""
