"""relax-repl: a shell for the compiler.

In: what a person, a script or a pipe types. Out: modules after passes, values, times, texts of every stage. The heart is
`session.Session.execute(text) -> Result`, which knows no terminal; its state is an immutable value, so that an input
that fails or is interrupted changes nothing, and a step back is an old value.

Reading order: `state` (what is known), `session` (inputs), `define` and `calculate` (the language at the prompt),
`values`, `stages` (a module on its way to a program), `commands/` (one file for each group), `invocation` and
`comparison` (calls that commands make), `lines` and `debugger`; then `transcript` (scripts that are tests), `completion`,
`painting`, `status`, and the three ways in: `main`, `plain`, `ui` (the line editor).
"""
