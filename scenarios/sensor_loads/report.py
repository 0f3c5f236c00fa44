"""What a load has found: figures with their goals, and checks of the output."""

import json
import os
import pathlib
import subprocess

import parity

STOLEN_SHARE_MAX = 0.01


class Report:
    """Figures are printed as they come. A check that fails makes the run INVALID; a goal that is not met does not."""

    def __init__(self, load, args):
        self.load, self.out = load, pathlib.Path(args.out)
        self.figures, self.checks, self.notes = [], [], []
        # Paths say nothing to others.
        options = {name: value for name, value in vars(args).items() if name not in ("load", "binary", "out")}
        version = subprocess.run([args.binary, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        machine = {"cpu": parity.processor(), "processors": os.cpu_count(), "kernel": os.uname().release}
        self.head = {"load": load, "tacho": version, "machine": machine, "options": options}
        self._stolen = parity.stolen_share()

    def figure(self, what, value, unit, at_least=None, at_most=None):
        """A measured figure, with the goal that it must reach."""
        met = None
        if at_least is not None or at_most is not None:
            met = (at_most is None or value <= at_most) and (at_least is None or value >= at_least)
        self.figures.append({"what": what, "value": value, "unit": unit, "at_least": at_least, "at_most": at_most, "met": met})
        goal = ""
        if met is not None:
            limit = f">= {at_least:,}" if at_most is None else f"<= {at_most:,}"
            goal = f"   goal {limit}: {'met' if met else 'NOT met'}"
        print(f"  {what:<80} {value:>14,.{2 if abs(value) < 1000 else 0}f} {unit}{goal}", flush=True)

    def check(self, what, expected, found, passed=None):
        """Compares the output with what it must be."""
        passed = expected == found if passed is None else passed
        self.checks.append({"what": what, "expected": expected, "found": found, "passed": passed})
        if not passed:
            print(f"  FAILED {what}: expected {expected}, found {found}", flush=True)

    def take(self, name, result):
        """Takes over the checks of a run of `tacho bench`, and the gates that it did not pass."""
        for one in result["verification"]:
            self.check(f"{name}: {one['what']}", one["expected"], one["found"], one["passed"])
        for gate in result["gates"]:
            if not gate["passed"]:
                self.check(f"{name}: {gate['name']} ({gate['rule']})", gate["limit"], gate["value"], False)

    def note(self, text):
        self.notes.append(text)
        print(f"  {text}", flush=True)

    def finish(self):
        """Writes the result. Returns whether it is valid."""
        stolen = self._stolen()
        what = "share of the processors' time that other guests got"
        self.check(what, f"at most {STOLEN_SHARE_MAX}", round(stolen, 4), stolen <= STOLEN_SHARE_MAX)
        valid = all(check["passed"] for check in self.checks)
        result = {**self.head, "valid": valid, "figures": self.figures, "checks": self.checks, "notes": self.notes}
        (self.out / "result.json").write_text(json.dumps(result, indent=1) + "\n")
        passed = sum(check["passed"] for check in self.checks)
        print(f"{'VALID' if valid else 'INVALID'}: {passed} of {len(self.checks)} checks passed; {self.out / 'result.json'}")
        return valid
