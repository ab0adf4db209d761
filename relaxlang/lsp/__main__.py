"""`python -m relaxlang.lsp` is `relaxlang-lsp`."""

from relaxlang.lsp.server import main

if __name__ == "__main__":
    main()
