"""Reads the command line of `python -m holdfast run`, with the options and the checks of `holdfast run`."""

from __future__ import annotations

import json
import re
from difflib import get_close_matches
from pathlib import Path
from typing import Any

EXIT_REFUSED, EXIT_MISUSE, EXIT_NO_ANSWER, EXIT_HELD, EXIT_LOST, EXIT_FORBIDDEN = 1, 64, 69, 75, 76, 77
EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND = 126, 127

HELP = Path(__file__).with_name("help.txt").read_text()
_OPTIONS = {name: bool(value) for name, value in re.findall(r"^ .{5}(--[\w-]+)(?: ([A-Z/]+))?", HELP, re.M)}
_SHORT = {"-q": "--quiet", "-h": "--help"}
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_MAX_PERMITS = 200
_NO_LIMIT = float("inf")


class Failure(Exception):
    """An error of the user or the machine, with a line for people and an exit code."""

    def __init__(self, message: str, exit_code: int = EXIT_MISUSE) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Arguments:
    """The arguments that were typed. Each method raises Failure with a line that names the wrong option."""

    def __init__(self, args: list[str]) -> None:
        at = args.index("--") if "--" in args else len(args)
        self.command = args[at + 1 :]
        self._values: dict[str, list[str]] = {}
        words = self._parse(args[:at])
        self.key = words[0] if words else ""
        if self.has("--help"):
            return
        if not words:
            raise Failure("KEY -- COMMAND ... is missing")
        if len(words) > 1:
            raise Failure(f"put -- before the command: -- {' '.join(words[1:])}")
        if not self.command:
            raise Failure("there is no command after --")

    def _parse(self, args: list[str]) -> list[str]:
        words = []
        rest = iter(args)
        for arg in rest:
            if not arg.startswith("-") or arg == "-":
                words.append(arg)
                continue
            option, equals, value = arg.partition("=")
            option = _SHORT.get(option, option)
            if option not in _OPTIONS:
                near = get_close_matches(option, _OPTIONS, 1, 0.7)
                raise Failure(f"there is no option {option}{f': did you mean {near[0]}?' if near else ''}")
            if equals and not _OPTIONS[option]:
                raise Failure(f"{option} takes no value")
            if _OPTIONS[option] and not equals:
                value = next(rest, "-")
                if value.startswith("-"):
                    raise Failure(f"{option} needs a value: {option}=VALUE")
            self._values.setdefault(option, []).append(value)
        return words

    def has(self, option: str) -> bool:
        """True if the option was typed."""
        return option in self._values

    def text(self, option: str) -> str | None:
        """The value of an option, or its last value if it was repeated."""
        return self._values[option][-1] if self.has(option) else None

    def whole(self, option: str, minimum: int, maximum: int) -> int | None:
        """The value of an option as a whole number."""
        text = self.text(option)
        if text is None:
            return None
        if re.fullmatch("[0-9]{1,9}", text) and minimum <= int(text) <= maximum:
            return int(text)
        raise Failure(f"{option} must be a whole number from {minimum} to {maximum}, not '{text}'")

    def seconds(self, option: str, default: float, minimum: int, maximum: float = _NO_LIMIT, word: str = "") -> float:
        """The value of an option as a duration, such as `90`, `60s` or `1h`, or a word that means without a limit."""
        text = self.text(option)
        if text is None or (word and text == word):
            return default if text is None else _NO_LIMIT
        match = re.fullmatch("([0-9]+(?:[.][0-9]+)?)([smhd]?)", text)
        if match and minimum <= (value := float(match[1]) * _UNITS[match[2]]) <= maximum:
            return int(value) if value.is_integer() else value
        span = f"of at least {minimum} seconds" if maximum == _NO_LIMIT else f"from {minimum} to {maximum:.16g} seconds"
        such = f"such as 90, 60s, 15m or 1h{word and f', or {word}'}"
        raise Failure(f"{option} must be a duration {span}, {such}, not '{text}'")

    def data(self) -> Any:
        """The data that other callers see with the lease."""
        text = self.text("--data")
        try:
            return None if text is None else json.loads(text)
        except ValueError:
            raise Failure(f"--data must be JSON, not '{text}'") from None

    def permit(self) -> dict[str, Any]:
        """The options that say how the key is shared, and which runs this one replaces."""
        limit = self.whole("--limit", 1, _MAX_PERMITS)
        weight = self.whole("--weight", 1, limit or _MAX_PERMITS)
        is_shared, is_exclusive, replace = self.has("--shared"), self.has("--exclusive"), self.text("--replace")
        if is_exclusive and (is_shared or limit or weight):
            raise Failure("--exclusive excludes --shared, --limit and --weight")
        if weight and not limit and not is_shared:
            raise Failure("--weight needs --limit or --shared")
        if replace not in (None, "waiting", "running"):
            raise Failure(f"--replace must be one of waiting, running, not '{replace}'")
        if replace:
            self._exclude("--replace", "--limit", "--weight", "--shared")
            if not self.seconds("--wait", 0, 0, word="forever"):
                raise Failure("--replace needs --wait")
        mode = "exclusive" if is_exclusive else "shared" if is_shared else None
        return {"limit": limit, "weight": weight, "mode": mode, "replace": replace}

    def slot(self) -> dict[str, Any] | None:
        """The options that name the slot. None if the command has no slot."""
        keep = self.seconds("--keep", 0, 2)
        name = "--once-per" if self.has("--once-per") else "--slot"
        if self.has(name):
            self._exclude(name, "--slot", "--limit", "--weight", "--shared", "--exclusive", "--replace")
            fields = {"per": self.text("--once-per"), "slot": self.text("--slot"), "zone": self.text("--zone")}
            return {**fields, "keep": keep or None}
        if keep or self.has("--zone"):
            raise Failure("--keep and --zone need --once-per or --slot")
        return None

    def _exclude(self, option: str, *others: str) -> None:
        for other in others:
            if other != option and self.has(other):
                raise Failure(f"{option} and {other} exclude each other")

    def rates(self) -> list[dict[str, Any]]:
        """The rates of the key, such as `50/1m`, or with a name and units `tokens:100000/1m=2000`."""
        rates = []
        for text in self._values.get("--rate", []):
            match = re.fullmatch("(?:([A-Za-z0-9_-]+):)?([0-9]+)/([0-9]+[smhd])(?:=([0-9]+))?", text)
            if not match:
                such = "such as 50/1m or tokens:100000/1m=2000"
                raise Failure(f"a rate is N/PERIOD or NAME:N/PERIOD=UNITS, {such}, not '{text}'")
            name, limit, per, units = match.groups()
            rate = {"limit": int(limit), "per": per, "name": name, "units": units and int(units)}
            rates.append({field: value for field, value in rate.items() if value is not None})
        return rates
