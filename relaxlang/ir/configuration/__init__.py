"""What a module is compiled for and by: data that lies on the module and that every pass can read.

A `Target` is a processor, an `Executor` what runs the compiled functions, a `Runtime` the library that they stand on;
each is a kind with options from a registry (`kinds`) that others may extend. `CompilerConfig` bundles them with the
default targets and the settings of the pass context; `CompilerConfig.of(mod)` reads it from a module's attributes and
`put_on` writes it there, `frozen` keeps passes from losing it.

Reading order: `kinds`, `executor`, `runtime`, `target` (and `host`, this machine), `function_targets`,
`compiler_config`, `configure` (from the arguments of `build`), `frozen`.
"""
