"""The reading of pages that `test_documented_commands.py` relies on, over small pages, and the shell, over small commands."""

import pytest

from harness import page_shell, pages
from harness.pages import blocks, difference

PAGE = """\
# A page

Text.

```sh
tacho device list
```
```text
NAME
```

<!-- not run: needs a
     machine -->

```sh
reboot
```

1. A list:

   ```console
   $ echo a \\
     b
   a b
   $ true
   ```

Text between.

```text
not an output
```
"""


def test_blocks_have_their_outputs_and_marks():
    command, shown, marked, console, text = blocks(PAGE, "a.md")
    assert (command.text, command.output, command.runs, command.place) == ("tacho device list", "NAME", True, "a.md:5")
    assert shown.is_output and not text.is_output
    assert not marked.runs and marked.reason.split() == ["needs", "a", "machine"]
    assert console.steps() == [("echo a \\\n  b", "a b"), ("true", "")]
    assert marked.output is None and text.language == "text"


def test_a_mark_is_of_the_next_block_only():
    first, second = blocks("<!-- before: a=1 -->\n```sh\ntrue\n```\n\nText\n\n```sh\nfalse\n```\n", "a.md")
    assert (first.marks, second.marks) == ({"before": "a=1"}, {})
    (separated,) = blocks("<!-- not run: x -->\n\nText\n\n```sh\ntrue\n```\n", "a.md")
    assert separated.runs
    (of_two,) = blocks("<!-- exit codes: 0 1 -->\n<!-- before:\na\nb\n-->\n```sh\ntrue\n```\n", "a.md")
    assert of_two.exit_codes == [0, 1] and of_two.marks["before"] == "a\nb"


@pytest.mark.parametrize("text", ["```sh\ntrue\n", "<!-- not run: x\n```sh\ntrue\n```\n"], ids=["block", "comment"])
def test_what_does_not_end_is_refused(text):
    with pytest.raises(AssertionError, match="does not end"):
        blocks(text, "a.md")


@pytest.mark.parametrize(
    ("shown", "real"),
    [
        ("a  b\nc", "a b\n\nc\n"),
        ("a ... c", "a b c"),
        ("first\n...\nlast", "first\nx\ny\nlast"),
        ("first\n...", "first"),
        ("token <word>", "token abc"),
        ('{"id":"<id>"}', '{"id":"x-1"}'),
        ("at 2026-01-01T00:00:00Z", "at 2026-11-29T10:00:00.123456Z"),
        ('{"ts": 1763749200000}', '{"ts":1763749200001}'),
        ('{"b": 1, "a": 2}', '{"a":2,"b":1}'),
        ('{"b":{...},"a":2}', '{"b":{"c":1},"a":2}'),
        ('{"a": 1,\n "b": [1, 2]}', '{"a":1,"b":[1,2]}'),
        ("7d1a0c4e-1b5f-4c0e-9d7a-3c1f5e8a2b60 x", "00000000-0000-4000-8000-000000000000 x"),
        ("key tacho_AAAAAAAAAAAAAAAAAAAAAAAA", "key tacho_BBBBBBBBBBBBBBBBBBBBBBBBB"),
    ],
)
def test_outputs_that_agree(shown, real):
    assert difference(shown, real) is None


@pytest.mark.parametrize(
    ("shown", "real"),
    [
        ("a", "b"),
        ("a", "a\nb"),
        ("a\nb", "a"),
        ("a.c", "abc"),
        ("token <word>", "token a b"),
        ("a ... c", "a\nc"),
        ('{"a": 1}', '{"a": 2}'),
        ("at 2026-01-01T00:00:00Z", "at noon"),
        ("", "something"),
    ],
)
def test_outputs_that_differ(shown, real):
    assert difference(shown, real) is not None


def test_the_arguments_of_the_program_in_a_line():
    words = pages.words_of_program
    assert words("tacho sql 'SELECT 1' --json | head   # a comment") == ["sql", "SELECT 1", "--json"]
    assert words("TACHO_PASSWORD=x tacho status") == ["status"]
    assert words("scenarios/aa --help") is None
    assert pages.program_lines("tacho bench \\\n  run x\n\n# no\n$ tacho y") == ["tacho bench run x", "tacho y"]


def test_commands_in_sentences():
    text = "Type `tacho status`, or `tacho user add|delete` twice, not `curl x`.\n```sh\n`tacho no`\n```\nAnd `tacho status` again.\n"
    assert pages.inline_commands(text) == ["tacho status", "tacho user add", "tacho user delete"]


@pytest.fixture
def shell(tmp_path):
    if not page_shell.namespaces():
        pytest.skip("no namespaces: run as root, or allow users to make them")
    return lambda *commands, codes=(): page_shell.run([page_shell.typed(command, codes) for command in commands], tmp_path)


def test_commands_share_one_shell_and_each_has_its_output(shell):
    done = shell("a=1; cd /mnt", "echo $a; pwd")
    assert (done.failed, done.outputs) == (None, ["", "1\n/mnt\n"]), done


def test_the_first_failure_ends_the_page(shell):
    done = shell("echo before", "false\necho after", "echo never")
    assert (done.failed, done.outputs) == ("false", ["before\n", ""]), done


def test_a_failure_within_a_pipe_counts(shell):
    assert shell("false | cat").failed is not None


def test_lines_may_have_other_exit_codes(shell):
    assert shell("exit_with() { return $1; }\nexit_with 1   # a comment\ntrue", codes=[0, 1]).failed is None


def test_other_exit_codes_still_fail(shell):
    assert shell("(exit 2)", codes=[0, 1]).failed is not None


def test_the_shell_has_directories_of_its_own(shell):
    assert shell("touch /mnt/a /var/lib/tacho/b; ls /mnt /var/lib").failed is None
