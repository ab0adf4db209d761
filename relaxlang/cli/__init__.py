"""The command line, `relaxc`: files in, files and text out, one exit code.

`main` runs the show. In reading order: `options` (the table of options and its parser), `help` (the same table for
people) and `completion` (for shells), `configuration` (values of options from pyproject.toml and the environment),
`settings` (what the options mean together), `parts` (several modules in a file, announced diagnostics), `compilation`
(one file on its way through the stages, each made once and only when asked for), `emit` (what is written where) and
`html`, `instruments` and `timing` (watching passes), `arguments` (the text of `--arg`), `parameters` (values for a
function's parameters), `run` and `profile`, `debugging`, `listing` and `describe` (what there is), `report` and
`progress` (what is said on stderr), `watch` (all of it again), `crash` (a reproducer for what must not happen).

Results go to stdout; diagnostics, times and intermediate programs to stderr; nothing is said on success unless asked.
"""
