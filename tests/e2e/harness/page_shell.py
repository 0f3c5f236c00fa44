"""A shell that types the commands of a page, with a network, file system and processes of its own.

The network is a loopback of its own, so the default ports are free for every page at once. `/mnt`, `/var/lib` and `/run` are empty. All processes
end with the shell, also the servers that it has started. This needs root, or a kernel that lets users have namespaces.
"""

import functools
import os
import re
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness.server import ROOT, binary, clean_environment

PAGE_S = 180

NAMESPACES = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
# For users who are not root.
MAPPED = [*NAMESPACES, "--user", "--map-root-user"]

# Programs as the tests need them, by their names.
STAND_INS = {
    # An answer that is an error fails the command.
    "curl": 'case " $* " in *" -sf "*) exec "$PROGRAM_CURL" "$@" ;; *) exec "$PROGRAM_CURL" --fail-with-body "$@" ;; esac',
    # Tells when it has subscribed; the driver waits for that.
    "mosquitto_sub": """
        stdbuf -oL "$PROGRAM_MOSQUITTO_SUB" -d "$@" | while IFS= read -r line; do
          case "$line" in
          "Subscribed (mid"*) : >"$STEPS/subscribed.$$" ;;
          "Client "*) ;;
          *) printf '%s\\n' "$line" ;;
          esac
        done""",
    # There is one user here, the one of the tests.
    "sudo": 'case "$1" in -u) shift 2 ;; esac; "$@"',
    "install": 'exec "$PROGRAM_INSTALL" $(printf "%s\\n" "$@" | sed "/^-o$/d; /^tacho$/d")',
    # The service of the unit file is a server on its directory.
    "systemctl": """
        case "$*" in
        "stop tacho") stop_server /var/lib/tacho ;;
        "start tacho") tacho serve --data /var/lib/tacho >/dev/null ;;
        *) echo "systemctl $*: the tests cannot"; exit 1 ;;
        esac""",
}

DRIVER = """
ip link set lo up
for directory in /mnt /var/lib /run "$SHELL_DIRECTORY"; do mount -t tmpfs tmpfs "$directory"; done
mkdir -p /var/lib/tacho /run/secrets
cd "$SHELL_DIRECTORY"
for name in docs scenarios config; do ln -s "$CHECKOUT/$name" "$name"; done
# A server runs on, and the next command waits until it is ready. So does the reader, with two terminals. It is no job of this shell: `wait` is for others.
tacho() {
  case "$1" in
  serve | demo)
    local log="$STEPS/server.$(date +%s%N)"
    : >"$log"
    (command tacho "$@" >>"$log" 2>&1 & echo $! >"$log.pid")
    until grep -q -e '^ready$' -e '"ready":true' "$log"; do
      kill -0 "$(cat "$log.pid")" 2>/dev/null || { cat "$log"; return 1; }
      sleep 0.02
    done
    cat "$log" ;;
  *) command tacho "$@" ;;
  esac
}
export -f tacho
stop_server() {
  local pid
  pid=$(jq .pid "$1/server.json")
  kill "$pid"
  while kill -0 "$pid" 2>/dev/null; do command sleep 0.02; done
}
export -f stop_server
restart() {
  stop_server tacho-data
  export "$@"
  tacho serve >/dev/null
}
# A machine under tests is slower than a reader.
sleep() { command sleep "$1"; command sleep "$1"; }
subscribed() { while kill -0 "$1" 2>/dev/null && [ ! -e "$STEPS/subscribed.$1" ]; do sleep 0.02; done; }
set -eE -o pipefail
trap 'printf "%s" "$BASH_COMMAND" >"$STEPS/failed"' ERR
for step in $(seq 0 $((STEP_COUNT - 1))); do
  exec >"$STEPS/$step.out" 2>&1
  source "$STEPS/$step.sh"
done
echo all >"$STEPS/done"
"""


@dataclass
class Done:
    """What became of the commands: their outputs as far as they ran, and the command that failed."""

    outputs: list[str]
    failed: str | None
    log: str


@functools.cache
def namespaces() -> list[str] | None:
    """The command that makes the namespaces; `None` if this machine refuses them."""
    for command in (NAMESPACES, MAPPED):
        tried = subprocess.run([*command, "sh", "-c", "ip link set lo up && mount -t tmpfs tmpfs /mnt"], capture_output=True, timeout=PAGE_S)
        if tried.returncode == 0:
            return command
    return None


def which(name: str) -> str:
    """The program itself, or its name if it is not there."""
    return shutil.which(name) or name


def typed(command: str, codes: list[int] = ()) -> str:
    """The command as the driver runs it: after a subscriber in the background it waits for the subscription. `codes` are the exit codes that each
    line may have; without them it must succeed."""
    lines = []
    for line in command.splitlines():
        lines.append(line)
        if re.match(r"mosquitto_sub .*&( *#.*)?$", line):
            lines.append("subscribed $!")
        elif codes:
            lines[-1] = f"{{ {line}\n}} || case $? in {'|'.join(map(str, codes))}) ;; *) false ;; esac"
    return "\n".join(lines) + "\n"


def run(commands: list[str], directory: Path) -> Done:
    """Types the commands one after the other, each as `typed` gives it, until one fails."""
    steps, programs, shell = (directory / name for name in ("steps", "programs", "shell"))
    for made in (steps, programs, shell):
        made.mkdir(parents=True)
    (programs / "tacho").symlink_to(binary())
    for name, text in STAND_INS.items():
        (programs / name).write_text(f"#!/bin/bash\n{text}\n")
        (programs / name).chmod(0o755)
    for number, command in enumerate(commands):
        (steps / f"{number}.sh").write_text(command)
    # No name begins with TACHO_: those are settings of the server.
    environment = clean_environment() | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(shell),
        "PROGRAM_CURL": which("curl"),
        "PROGRAM_MOSQUITTO_SUB": which("mosquitto_sub"),
        "PROGRAM_INSTALL": which("install"),
        "STEPS": str(steps),
        "STEP_COUNT": str(len(commands)),
        "SHELL_DIRECTORY": str(shell),
        "CHECKOUT": str(ROOT),
    }
    process = subprocess.Popen(
        [*namespaces(), "bash", "-c", DRIVER], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        log = process.communicate(timeout=PAGE_S)[0]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)  # all processes of its namespace end with it
        log = process.communicate()[0] + f"\nnot at its end after {PAGE_S} s"
    outputs = [path.read_text(errors="replace") for n in range(len(commands)) if (path := steps / f"{n}.out").exists()]
    if (steps / "done").exists():
        return Done(outputs, None, log)
    failed = steps / "failed"
    return Done(outputs, failed.read_text() if failed.exists() else "an unknown command", log)
