"""What is written is true: the commands of README.md and of all pages below docs, typed as they are printed, and what the pages show of their
output. `harness/pages.py` says how a page marks what cannot run here."""

import re
import subprocess
import tomllib
import xml.etree.ElementTree as xml
from collections import Counter

import pytest

from harness import page_shell, pages
from harness.pages import CHECKED, COMMANDS, ROOT, SHOWN
from harness.server import run

# The page with the commands that the other pages expect the reader to have typed.
BEGIN = "docs/README.md"
# Pages whose commands need no server of ours.
NO_SERVER = ("docs/bench/", "docs/tune/", "docs/format/", "docs/adr/")
# Other tests run the SQL of these pages.
SQL_ELSEWHERE = {"docs/sql.md": "crates/query/tests/page.rs", "docs/format/part.md": "tests/e2e/test_parts_elsewhere.py"}
# What the TOML of a page is; TOML of other programs is only parsed.
TOML = {"docs/ops/": "configuration", "docs/sensors.md": "descriptor", "docs/sensor-classes.md": "descriptor"}

# Pages whose sentences name commands, and whose blocks build and test.
WITH_SENTENCES = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "scenarios/README.md", "tests/e2e/README.md")

ALL = {page: pages.of_page(page) for page in pages.pages()}
RUN = [page for page, blocks in ALL.items() if any(block.runs for block in blocks)]


def begin(page):
    """The commands that a reader of the page has typed before, by the page that says so."""
    typed = [f"{block.marks.get('before', '')}\n{block.text}" for block in ALL[page] if block.runs]
    starts = any((pages.words_of_program(line) or [""])[0] == "serve" for text in typed for line in pages.program_lines(text))
    if page in ("README.md", BEGIN) or page.startswith(NO_SERVER) or starts:
        return []
    return [block.text for block in ALL[BEGIN] if block.runs]


@pytest.fixture(scope="session")
def namespaces():
    """Skips where the kernel gives the tests no network of their own."""
    if not page_shell.namespaces():
        pytest.skip("no namespaces: run as root, or allow users to make them")


@pytest.mark.parametrize("page", RUN)
def test_the_commands_of_a_page_do_what_it_shows(page, namespaces, tmp_path):
    steps = [(None, command, None) for command in begin(page)]
    for block in ALL[page]:
        if before := block.marks.get("before"):
            steps.append((block, before, None))
        if block.runs:
            steps += [(block, command, shown) for command, shown in block.steps()]
    commands = [page_shell.typed(command, block.exit_codes if block and command != block.marks.get("before") else []) for block, command, _ in steps]
    done = page_shell.run(commands, tmp_path)
    if done.failed is not None:
        block = steps[max(len(done.outputs) - 1, 0)][0]
        place = block.place if block else BEGIN
        pytest.fail(f"{place}: this command failed\n{done.failed}\n\nIts block printed\n{(done.outputs or [''])[-1]}{done.log}")
    wrong = [
        f"{block.place}: {found}"
        for (block, _, shown), real in zip(steps, done.outputs, strict=True)
        if shown is not None and (found := pages.difference(shown, real))
    ]
    assert not wrong, "\n\n".join(wrong)


def test_every_block_says_what_it_is():
    faults = []
    for block in (block for blocks in ALL.values() for block in blocks):
        if block.language not in (*COMMANDS, *CHECKED, *SHOWN):
            known = ", ".join((*COMMANDS, *CHECKED, *SHOWN))
            faults.append(f"{block.place}: the language {block.language!r} is none of {known}")
        if "not run" in block.marks and (block.language not in COMMANDS or not block.reason):
            faults.append(f"{block.place}: only a block of commands is marked as not run, and with a reason")
    assert not faults, "\n".join(faults)
    print(pages.table())


def test_commands_that_are_not_run_have_options_and_scenarios_that_exist():
    marked = [block for blocks in ALL.values() for block in blocks if block.language in COMMANDS and block.reason]
    check_options([(block.place, line) for block in marked for line in pages.program_lines(block.text)])


def test_commands_in_sentences_have_options_and_scenarios_that_exist():
    check_options([(page, line) for page in (*ALL, *WITH_SENTENCES) for line in pages.inline_commands((ROOT / page).read_text())])


def check_options(lines):
    """With `--help` at its end a command line does nothing, and the program has read the options before."""
    faults = {}
    for place, line in lines:
        words = [word for word in pages.words_of_program(line) or [] if word not in ("...", "…")]
        if words and line not in faults:
            faults[line] = f"{place}: {line}\n{fault}" if (fault := fault_of(words)) else None
    assert not any(faults.values()), "\n".join(filter(None, faults.values()))


def fault_of(words):
    """What is wrong with a command line; `None` if nothing is. The value of an option may be left out, or be a placeholder."""
    done = run(*words, "--help", check=False)
    if done.returncode != 0 and not re.search(r"a value is required for|invalid value '[A-Z]+'", done.stderr):
        return done.stderr
    missing = [word for word in words if re.match(r"(scenarios|docs)/\S+\.toml$", word) and not (ROOT / word).exists()]
    if missing:
        return f"{missing[0]} does not exist"
    # A scenario is a name in the list; a word of any other kind is a file or a placeholder.
    is_run = words[0] == "bench" and words[1:2] and words[1] in ("run", "capacity", "ab")
    if is_run and words[2:] and re.fullmatch(r"[a-z0-9-]+", words[2]) and not words[2].startswith("-"):
        listed = run("bench", "list", words[2], check=False)
        return listed.stderr if listed.returncode != 0 else None
    return None


def test_json_is_json():
    faults = []
    for block in (block for blocks in ALL.values() for block in blocks if block.language == "json"):
        try:
            pages.json_values(block.text)
        except ValueError as error:
            faults.append(f"{block.place}: {error}")
    assert not faults, "\n".join(faults)


def test_xml_is_xml():
    for block in (block for blocks in ALL.values() for block in blocks if block.language == "xml"):
        assert xml.fromstring(block.text) is not None, block.place


def test_sql_is_run_by_other_tests():
    with_sql = {block.page for blocks in ALL.values() for block in blocks if block.language == "sql"}
    assert with_sql == set(SQL_ELSEWHERE), "a new page with SQL: write the statement as a command of `tacho sql`"
    for page, test in SQL_ELSEWHERE.items():
        assert page.rsplit("/", 1)[-1] in (ROOT / test).read_text(), f"{test} does not read {page}"


def test_toml_is_what_its_page_says(tmp_path):
    faults, checked = [], Counter()
    for block in (block for blocks in ALL.values() for block in blocks if block.language == "toml"):
        kind = next((kind for start, kind in TOML.items() if block.page.startswith(start)), "other")
        checked[kind] += 1
        try:
            found = tomllib.loads(block.text)
        except tomllib.TOMLDecodeError as error:
            faults.append(f"{block.place}: {error}")
            continue
        file = tmp_path / f"{kind}.toml"
        if kind == "configuration":
            file.write_text(block.text)
            done = run("config", "--config", file, check=False)
        elif kind == "descriptor":
            file.write_text(completed(block.text, found))
            done = run("sensor", "check", file, check=False)
        else:
            continue
        if done.returncode != 0:
            faults.append(f"{block.place}: {done.stdout}{done.stderr}")
    assert not faults, "\n".join(faults)
    assert checked["configuration"] and checked["descriptor"], checked


# The files of other programs that have a check: how the block begins, and the command.
CHECKS = {"listen mqtt": ("haproxy", "-c", "-f"), "remote_write:": ("promtool", "check", "config")}


@pytest.mark.parametrize("begin", CHECKS)
def test_files_of_other_programs_pass_their_own_check(begin, tmp_path):
    texts = [block.text for blocks in ALL.values() for block in blocks if block.language in SHOWN and block.text.startswith(begin)]
    assert texts
    for text in texts:
        (tmp_path / "file").write_text(text + "\n")
        done = subprocess.run([*CHECKS[begin], tmp_path / "file"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr


def completed(text, found):
    """A whole descriptor from the part that a page shows."""
    parts = ['name = "part"'] if "name" not in found else []
    source = '[[stream.source]]\nalias = "newest"\nstorage-size = 1'
    address = '[[stream.source.address]]\nwrapper = "tacho"\n[stream.source.address.predicate]\ndevice = "one"'
    stream = '[[stream]]\nname = "input"\nquery = "select * from {}"'
    if text.startswith("[[stream.source.address]]"):
        parts += [stream.format("newest"), source]
    elif text.startswith("[[stream.source]]"):
        parts.append(stream.format(found["stream"]["source"][0]["alias"]))
    parts.append(text)
    if "processing-class" not in found:
        parts.append('[processing-class]\nclass-name = "Bridge"')
    if "output-structure" not in found.get("processing-class", {}):
        field = {"DataClean": "processed"}.get(found.get("processing-class", {}).get("class-name"), "celsius")
        parts.append(f'[[processing-class.output-structure.field]]\nname = "{field}"\ntype = "double"')
    if "stream" not in found:
        parts += [stream.format("newest"), source, address]
    return "\n".join(parts) + "\n"
