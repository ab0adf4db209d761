"""(threads: below)"""

def provided() -> dict[str, int]:
    return {}
