"""The plugin in a pytest of its own."""

import pytest

CONFTEST = 'pytest_plugins = ["relaxlang.testing.plugin"]'


def test_golden(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile("def test_it(golden):\n    golden('made/a.txt', 'one\\ntwo\\n')\n")
    pytester.runpytest().stdout.fnmatch_lines(["*a.txt does not exist; `--bless` makes it"])
    pytester.runpytest("--bless").assert_outcomes(passed=1)
    made = pytester.path / "made" / "a.txt"
    assert made.read_bytes() == b"one\ntwo\n"
    pytester.runpytest().assert_outcomes(passed=1)
    made.write_text("one\nthree\n")
    pytester.runpytest().stdout.fnmatch_lines(["-three", "+two"])
    assert made.read_text() == "one\nthree\n"


def test_files_become_items_and_failures_are_text(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    directory = pytester.mkdir("rlx") / "run"
    directory.mkdir()
    (directory / "a.rlx").write_text("# expect: 1\n")
    result = pytester.runpytest("-rN", "--no-header")
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(["*a.rlx*interpreter*", "*a.rlx", "`# expect:` must follow an `# args:` of its own"])
    result.stdout.no_fnmatch_line("*Traceback*")
