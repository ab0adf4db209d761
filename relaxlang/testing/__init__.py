"""Testing programs of the language with pytest: `.rlx` files as tests, `.session` files, and golden files.

In: directories `…/rlx/<kind>/*.rlx`, where the kind says what must hold, and transcripts `…/repl/*.session`. Out:
pytest items, one or more for each file.

A project takes part with `pytest_plugins = ["relaxlang.testing.plugin"]` in its topmost conftest.py; nothing happens to
projects that don't ask for it. `pytest --bless` rewrites what was expected to what came out.

Reading order: `expectations` (what a file says must hold), `kinds` (how each kind checks it), `sessions`, `plugin`
(pytest's hooks and the fixture `golden`).
"""
