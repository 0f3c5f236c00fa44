"""The fenced blocks of the pages, what a comment before a block says about it, and the comparison of shown with real output.

`python tests/e2e/harness/pages.py` prints how many blocks of each page the tests run.

- A block of `sh` is typed line by line. The block of another language right after it, without prose between, is its output.
- A block of `console` has commands after `$ ` and their output below each.
- `<!-- not run: reason -->` before a block of commands: the tests do not run it. They still check the options of `tacho` in it.
- `<!-- before: commands -->`: what the tests do first so that the commands work, such as a file that the reader has. `restart NAME=VALUE` there starts the
  server again with these settings.
- `<!-- exit codes: 0 1 -->`: each command line may end with these. Otherwise all must succeed.

Shown output is compared without regard to blanks. `...` stands for any text of a line, and alone on a line for any lines; `<name>` stands for
one word. Times, ids (UUIDs) and API keys differ from run to run: each stands for all of its kind.
"""

import json
import re
import shlex
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# Commands for a shell.
COMMANDS = ("sh", "console")
# Languages whose blocks the tests check in another way.
CHECKED = ("json", "toml", "sql", "xml")
# Languages of what is only shown: drawings, bytes, and files of other programs.
SHOWN = ("text", "csv", "hex", "conf", "yaml", "js")

FENCE = re.compile(r"^( *)```+ *(\S*)")
MARK = re.compile(r"<!-- (not run|before|exit codes):\s*(.*?)\s*-->", re.DOTALL)
KINDS = {
    "key": r"\btacho_[A-Za-z0-9_-]{20,}",
    "id": r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
    "time": r"\b\d{4}-\d\d-\d\d[T ]\d\d:?\d\d(?::?\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?",
    "time with its zone": r"\b\d\d/\d\d/\d{4} \d\d:\d\d:\d\d [+-]\d{4}",
    "milliseconds": r"\b1\d{12}\b",
    "microseconds": r"\b1\d{15}\b",
}


@dataclass
class Block:
    """One fenced block."""

    page: str
    line: int
    language: str
    text: str
    marks: dict = field(default_factory=dict)
    # The output that the page shows right after the block.
    output: str | None = None
    # Whether this block is such an output.
    is_output: bool = False

    @property
    def place(self) -> str:
        """Where the block is, for messages."""
        return f"{self.page}:{self.line}"

    @property
    def reason(self) -> str | None:
        """Why the tests do not run it."""
        return self.marks.get("not run")

    @property
    def exit_codes(self) -> list[int]:
        """What its command lines may end with, if they need not succeed."""
        return [int(code) for code in self.marks.get("exit codes", "").split()]

    @property
    def runs(self) -> bool:
        """Whether its commands are typed."""
        return self.language in COMMANDS and self.reason is None

    def steps(self) -> list[tuple[str, str | None]]:
        """The commands, each part with the output that the page shows for it."""
        if self.language == "sh":
            return [(self.text, self.output)]
        steps = []
        lines = self.text.splitlines()
        assert lines and lines[0].startswith("$ "), f"{self.place}: a block of `console` begins with `$ `"
        while lines:
            command = [lines.pop(0).removeprefix("$ ")]
            while command[-1].endswith("\\"):
                command.append(lines.pop(0))
            shown = []
            while lines and not lines[0].startswith("$ "):
                shown.append(lines.pop(0))
            steps.append(("\n".join(command), "\n".join(shown) if shown else ""))
        return steps


def blocks(text: str, page: str) -> list[Block]:
    """All blocks of a page, in order."""
    found, lines, marks, previous = [], text.splitlines(), {}, None
    at = 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        if not fence:
            if lines[at].lstrip().startswith("<!--"):
                end = next((n for n in range(at, len(lines)) if "-->" in lines[n]), None)
                assert end is not None, f"{page}:{at + 1}: the comment does not end"
                comment = "\n".join(lines[at : end + 1])
                for mark, value in MARK.findall(comment):
                    marks[mark] = "\n".join(filter(None, [marks.get(mark), value]))
                at = end
            elif lines[at].strip():
                marks, previous = {}, None
            at += 1
            continue
        start, indent = at, fence[1]
        at += 1
        while at < len(lines) and not re.fullmatch(r" *```+ *", lines[at]):
            at += 1
        assert at < len(lines), f"{page}:{start + 1}: the block does not end"
        inside = "\n".join(line.removeprefix(indent) for line in lines[start + 1 : at])
        block = Block(page, start + 1, fence[2], inside, marks)
        if previous and previous.language == "sh" and block.language not in COMMANDS and not marks:
            previous.output, block.is_output = inside, True
            previous = None
        else:
            previous = block
        found.append(block)
        marks = {}
        at += 1
    return found


def pages() -> list[str]:
    """README.md and all pages below docs, as paths from the root."""
    below = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
    return ["README.md", *below]


def of_page(page: str) -> list[Block]:
    """The blocks of a page of this checkout."""
    return blocks((ROOT / page).read_text(), page)


def difference(shown: str, real: str) -> str | None:
    """What is wrong with the output that a page shows; `None` if it is what came."""
    try:
        compared = _compact(shown), _compact(real)
    except ValueError:
        compared = shown, real
    pattern = "".join(_line_pattern(line) for line in _lines(compared[0]))
    came = "".join(line + "\n" for line in _lines(compared[1]))
    if re.fullmatch(pattern, came):
        return None
    return f"the page shows\n{shown}\n\nand this came\n{real}"


def _lines(text: str) -> list[str]:
    """Lines with one blank between words and each volatile text replaced by its kind."""
    for kind, expression in KINDS.items():
        text = re.sub(expression, f"\0{kind}\0", text)
    squeezed = (" ".join(line.split()) for line in text.splitlines())
    return [line for line in squeezed if line]


def _compact(text: str) -> str:
    """JSON without blanks between its tokens and with members in one order."""
    return "\n".join(json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True) for value in json_values(text))


def _line_pattern(line: str) -> str:
    if line == "...":
        return r"(?:[^\n]*\n)*?"
    parts = re.split(r"(\.\.\.|<[a-z][a-z -]*>)", line)
    return "".join(r"[^\n]*?" if part == "..." else r'[^\s"]+' if at % 2 else re.escape(part) for at, part in enumerate(parts)) + r"\n"


def json_values(text: str) -> list:
    """The values of a text that holds one or several after each other; refuses anything else."""
    decoder, values, at = json.JSONDecoder(), [], 0
    text = text.strip()
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        values.append(value)
        while at < len(text) and text[at].isspace():
            at += 1
    if not values:
        raise ValueError("no JSON")
    return values


def program_lines(text: str) -> list[str]:
    """The command lines of a block, with the lines that continue them, without comments."""
    joined = re.sub(r"\\\n\s*", "", text)
    lines = (line.removeprefix("$ ").strip() for line in joined.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def words_of_program(line: str) -> list[str] | None:
    """The arguments of `tacho` in a command line; `None` for another program. Assignments before it do not count."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:  # a text over several lines
        return None
    while words and re.match(r"[A-Z_]+=", words[0]):
        words.pop(0)
    if not words or words[0] != "tacho":
        return None
    ends = [at for at, word in enumerate(words) if word in ("|", "&", "&&", ";", ">", "<")]
    return words[1 : ends[0] if ends else None]


def inline_commands(text: str) -> list[str]:
    """The command lines of `tacho` that the sentences of a page name, once each. Alternatives (`add|delete`) are commands of their own."""
    sentences = re.sub(r"(?ms)^ *```.*?^ *```+ *$", "", text)
    found = []
    for command in re.findall(r"`(tacho [^`\n]+)`", sentences):
        choice = re.search(r" ([a-z-]+(?:\|[a-z-]+)+)(?= |$)", command)
        words = choice[1].split("|") if choice else [""]
        found += [command.replace(choice[1], word) if choice else command for word in words]
    return list(dict.fromkeys(found))


def counts() -> dict[str, Counter]:
    """For each page with commands, how many blocks the tests run and how many they do not."""
    found = {}
    for page in pages():
        commands = [block for block in of_page(page) if block.language in COMMANDS]
        if commands:
            found[page] = Counter("not run" if block.reason else "run" for block in commands)
    return found


def table() -> str:
    """The counts as lines, with a sum."""
    found = counts()
    lines = [f"{count['run']:4} run {count['not run']:4} not run  {page}" for page, count in found.items()]
    total = sum(found.values(), Counter())
    return "\n".join([*lines, f"{total['run']:4} run {total['not run']:4} not run  all pages"])


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
