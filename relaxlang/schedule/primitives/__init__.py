"""The primitives, one a file: from a state, blocks, loops and numbers to the next state.

A primitive checks what it requires first and raises a diagnostic RLX10xx that names the block or loop at fault; what it
returns means the same program. `loops` holds what several share.
"""
