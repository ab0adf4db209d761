"""relax-repl: a shell for the compiler.

In: what a person, a script or a pipe types. Out: modules after passes, values, times, texts of every stage. The heart
is `session.Session.execute(text) -> Result`, which knows no terminal; its state is an immutable value, so that an input
that fails or is interrupted changes nothing, and a step back is an old value.

Reading order: `state` (what is known), `session` (inputs), `define` and `calculate` (the language at the prompt),
`values`, `stages` (a module on its way to a program), `command` (what a command is), `commands/` (one file for each
group), `difference`, `invocation` and `comparison` (what they share), `lines` and `debugger`, `primitives` and
`scheduling` (a kernel is scheduled by hand), `reasons` (why not) and `drawing` (graphs in text); then `transcript` (a
script is a test), `scope` and `completion` (what may follow), `painting`, `status`, and the three ways in: `main`,
`plain`, `ui` (the line editor).
"""
