"""`python -m holdfast run`, except for the tests that it shares with `holdfast run`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from service import Service, problem

from holdfast.errors import error_of
from holdfast.run import guard
from holdfast.run.arguments import Arguments, Failure
from holdfast.run.command import Command, executable
from holdfast.run.supervise import Supervisor
from holdfast.run.texts import Wait, duration, refusal

SOURCE = Path(__file__).parents[1] / "src"


def parse(*options: str) -> Arguments:
    return Arguments([*options, "k", "--", "true"])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("60s", 60), ("15m", 900), ("1h", 3600), ("2d", 172_800), ("0.5m", 30), ("0.3", 0.3)],
)
def test_a_duration_is_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert parse("--wait", text).seconds("--wait", 0, 0) == seconds


@pytest.mark.parametrize("text", ["", "1h30m", "1w", "-1", "1 h", "h", "1e3", "\u0661"])
def test_any_other_text_is_not_a_duration(text: str) -> None:
    with pytest.raises(
        Failure, match="--wait must be a duration of at least 0 seconds, such as 90, 60s, 15m or 1h, not"
    ):
        parse(f"--wait={text}").seconds("--wait", 0, 0)


def test_a_wait_may_be_forever() -> None:
    assert parse("--wait", "forever").seconds("--wait", 0, 0, word="forever") == float("inf")


def test_the_last_value_counts_and_switches_have_short_names() -> None:
    args = parse("--ttl=10", "--ttl", "20", "-q")
    assert (args.text("--ttl"), args.has("--quiet"), args.key, args.command) == ("20", True, "k", ["true"])


def test_options_may_follow_the_key_and_the_command_keeps_its_own() -> None:
    args = Arguments(["k", "--limit", "3", "--", "job", "--limit", "--", "x"])
    assert (args.key, args.permit()["limit"], args.command) == ("k", 3, ["job", "--limit", "--", "x"])


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ([], "KEY -- COMMAND ... is missing"),
        (["k"], "there is no command after --"),
        (["k", "job"], "put -- before the command: -- job"),
        (["--wiat", "1"], "there is no option --wiat: did you mean --wait?"),
        (["-x"], "there is no option -x"),
        (["--wait"], "--wait needs a value: --wait=VALUE"),
        (["--shared=yes"], "--shared takes no value"),
    ],
)
def test_a_wrong_command_line_is_named(typed: list[str], message: str) -> None:
    with pytest.raises(Failure) as caught:
        Arguments(typed)
    assert (str(caught.value), caught.value.exit_code) == (message, 64)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--limit", "0"], "--limit must be a whole number from 1 to 200, not '0'"),
        (["--limit", "2", "--weight", "3"], "--weight must be a whole number from 1 to 2, not '3'"),
        (["--weight", "2"], "--weight needs --limit or --shared"),
        (["--exclusive", "--limit", "2"], "--exclusive excludes --shared, --limit and --weight"),
        (["--replace", "all"], "--replace must be one of waiting, running, not 'all'"),
        (["--replace", "waiting"], "--replace needs --wait"),
        (["--replace", "waiting", "--wait", "1", "--shared"], "--replace and --shared exclude each other"),
    ],
)
def test_options_of_a_permit_that_exclude_each_other_are_refused(options: list[str], message: str) -> None:
    with pytest.raises(Failure) as caught:
        parse(*options).permit()
    assert str(caught.value) == message


def test_a_permit_has_the_options_of_the_client() -> None:
    nothing = {"limit": None, "weight": None, "mode": None, "replace": None}
    assert parse().permit() == nothing
    assert parse("--shared", "--weight", "200").permit() == {**nothing, "mode": "shared", "weight": 200}
    assert parse("--replace", "running", "--wait", "1").permit() == {**nothing, "replace": "running"}


def test_a_slot_has_a_period_or_a_name() -> None:
    assert parse("--once-per", "1d", "--zone", "Europe/Berlin", "--keep", "2d").slot() == {
        **{"per": "1d", "slot": None, "zone": "Europe/Berlin", "keep": 172_800}
    }
    assert parse("--slot", "").slot() == {"per": None, "slot": "", "zone": None, "keep": None}
    assert parse().slot() is None
    for options in (
        ["--keep", "5"],
        ["--zone", "UTC"],
        ["--once-per", "1d", "--slot", "a"],
        ["--slot", "a", "--shared"],
    ):
        with pytest.raises(Failure, match=r"need|exclude"):
            parse(*options).slot()


def test_rates_have_names_and_units() -> None:
    args = parse("--rate", "50/1m", "--rate", "tokens:100000/1h=2000")
    assert args.rates() == [
        {"limit": 50, "per": "1m"},
        {"limit": 100_000, "per": "1h", "name": "tokens", "units": 2000},
    ]
    with pytest.raises(Failure, match="a rate is N/PERIOD or NAME:N/PERIOD=UNITS"):
        parse("--rate", "50").rates()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (-3, "0s"), (59.6, "1m"), (245, "4m 5s"), (7_384, "2h 3m"), (90_000, "1d 1h")]
)
def test_a_length_of_time_has_two_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


CAP = {"limit": 0, "rates": None, "reason": "down", "by": None, "since": "S", "until": "U"}


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"code": "LeaseHeld", "holder": None, "expiresAt": None}, "k is held by another caller"),
        (
            {"code": "LeaseHeld", "holder": "x", "expiresAt": None, "cap": CAP},
            "k is paused by an operator since S until U: down",
        ),
        (
            {"code": "LeaseHeld", "holder": "x", "expiresAt": "2026-01-01T00:00:00Z", "holders": [{"mode": "shared"}]}
            | {"used": 3, "limit": 5, "cap": {**CAP, "limit": 3, "until": None}},
            "k is held by x until 2026-01-01T00:00:00Z, in use: 3 of 5, cap 3 "
            "(capped at 3 by an operator since S: down)",
        ),
        (
            {"code": "RateExceeded", "boundBy": "requests", "retryAfterMs": 61_500},
            "the rate requests of k is used up: try again in 1m 2s",
        ),
        ({"code": "Superseded", "by": "ci"}, "a newer run of k, by ci, has replaced this one"),
    ],
)
def test_a_refused_run_says_why(fields: dict[str, Any], line: str) -> None:
    assert refusal(error_of({"detail": "", "key": "k", **fields}), None) == line


def test_a_wait_prints_its_place_at_once_and_then_each_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    wait, now = Wait(), [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    event = {"key": "k", "since": "S", "holder": "x", "holders": [], "expiresAt": None}
    assert wait.line(event) == "waiting since S: k is held by x"
    assert wait.line({**event, "holder": "y"}) is None
    assert wait.line({**event, "place": 2, "waiting": 4}) == "waiting since S at position 2 of 5: k is held by x"
    assert wait.line({**event, "place": 1, "waiting": 120}) is None
    now[0] += 60
    assert wait.line({**event, "place": 1, "waiting": 120}) == "waiting since S at position 1: k is held by x"
    now[0] += 60
    assert wait.line({**event, "place": 1, "waiting": 120}) is None


def started(script: str, remaining: float = 60.0) -> tuple[Command, subprocess.Popen[bytes]]:
    command = Command(lambda: True)
    command.start([executable("sh", os.environ["PATH"]), "sh", "-c", script], os.environ, remaining)
    return command, command._guard


def lease(remaining: float = 60.0) -> Any:
    return SimpleNamespace(key="k", expires_at="", remaining=remaining, held=remaining > 0, lost=None)


def test_a_command_ends_with_its_own_code() -> None:
    command, its_guard = started("exit 7")
    assert Supervisor(command, lease(), 1.0, False, print).run() == 7
    assert its_guard.poll() == -signal.SIGKILL


def test_a_lease_near_its_end_ends_the_command_by_sigterm(tmp_path: Path) -> None:
    command, _ = started(
        f"trap 'echo TERM >{tmp_path}/said; exit 3' TERM; touch {tmp_path}/on; while :; do sleep 0.01; done"
    )
    while not (tmp_path / "on").exists():
        time.sleep(0.01)
    notes: list[str] = []
    assert Supervisor(command, lease(0.9), 1.0, False, notes.append).run() == 76
    assert notes == ["the lease of k is lost (deadline): the command is ended"]
    assert (tmp_path / "said").read_text() == "TERM\n"


def test_a_command_that_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    command, _ = started(f"trap '' TERM; touch {tmp_path}/on; while :; do sleep 0.01; done")
    while not (tmp_path / "on").exists():
        time.sleep(0.01)
    at = time.monotonic()
    assert Supervisor(command, lease(0.9), 1.0, False, print).run() == 76
    assert time.monotonic() - at == pytest.approx(1.0, abs=0.9)


def test_a_slot_that_was_done_before_the_loss_was_seen_is_not_lost() -> None:
    command, _ = started("exit 0")
    while not command.has_ended():
        command.pause(1.0)
    command.exit_code = None  # the supervisor was paused before it could read this
    command.pause = lambda _: setattr(command, "exit_code", 0)  # type: ignore[method-assign]
    assert Supervisor(command, lease(0.5), 1.0, True, print).run() == 0


@pytest.mark.parametrize("clock", [0, 1])
def test_the_guard_ends_the_command_when_either_clock_says_so(clock: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One clock ran ahead of the other: the machine slept, or the wall clock was set."""
    command, its_guard = started("exec sleep 60")
    now = guard.times_by_both_clocks()
    now[clock] -= 3600
    monkeypatch.setattr(guard, "times_by_both_clocks", lambda: now)
    command.extend(600)
    assert its_guard.wait(10) == -signal.SIGKILL
    assert Supervisor(command, lease(), 1.0, False, print).run() == 137


def test_the_guard_ends_the_command_in_time_without_its_supervisor() -> None:
    command, its_guard = started("exec sleep 60", 0.5)
    assert its_guard.wait(10) == -signal.SIGKILL
    command.kill()


def test_a_command_that_cannot_be_executed_is_named(tmp_path: Path) -> None:
    command = Command(lambda: True)
    command.start([str(tmp_path), "job"], os.environ, 60)
    with pytest.raises(Failure, match=r"job: it cannot be executed \(EACCES\)") as caught:
        Supervisor(command, lease(), 1.0, False, print).run()
    assert caught.value.exit_code == 126


def run(service: Service, *words: str, **more: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "HOLDFAST_ENDPOINT": service.url, **more}
    command = [sys.executable, "-m", "holdfast", "run", *words]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_nested_run_does_not_pass_on_the_names_of_the_outer_one(service: Service) -> None:
    outer = {"HOLDFAST_SLOT": "outer", "HOLDFAST_FENCES": "{}", "HOLDFAST_HOLDER": "outer", "KEPT": "1"}
    job = run(service, "k", "--holder", "me", "--", "sh", "-c", 'env | grep "^HOLDFAST\\|^KEPT" | sort', **outer)
    printed, _ = job.communicate(timeout=20)
    names = ["HOLDFAST_ENDPOINT=" + service.url, "HOLDFAST_FENCE=7", "HOLDFAST_HOLDER=me", "HOLDFAST_KEY=k", "KEPT=1"]
    assert printed.splitlines() == names


def test_a_text_of_another_caller_cannot_forge_a_line(service: Service) -> None:
    service.answers["acquire"] = lambda _: (
        409,
        problem("LeaseHeld", key="k", holder="x\n\x1b[31my\u202e", expiresAt=None),
    )
    _, said = run(service, "k", "--", "true").communicate(timeout=20)
    assert said == "holdfast: k is held by x\\n\\x1b[31my\\u202e\n"


TOGETHER = """
import os, signal, sys
from holdfast import run
def on_event(self, event):
    if event["type"] == "acquired":
        os.kill(os.getpid(), signal.SIGTERM)
run._Runner._on_event = on_event
sys.exit(run.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("options", [[], ["--slot", "a"]])
def test_a_signal_that_comes_with_the_grant_releases_the_lease(options: list[str], service: Service) -> None:
    grant = {"key": "k", "fence": 7, "expiresAt": "2026-01-01T00:00:00.000Z", "remainingMs": 60_000, "holder": "me"}
    run_of_slot = {**grant, "outcome": "run", "leaseId": "l", "slot": "a", "waitedMs": 0}
    service.answers["begin"] = lambda _: (200, run_of_slot)
    # The first release is refused, so that the runner has to wait for a second one.
    refused = iter([(503, problem("Unavailable"))])
    service.answers["release"] = lambda _: next(refused, (200, {"released": True}))
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "HOLDFAST_ENDPOINT": service.url}
    words = [sys.executable, "-c", TOGETHER, "run", "k", *options, "--", "echo", "never"]
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=20)
    assert (ended.returncode, ended.stdout, ended.stderr) == (143, "", "")
    assert len(service.calls("release")) == 2


def test_a_signal_ends_a_waiting_caller_without_a_message(service: Service) -> None:
    service.answers["acquire"] = lambda _: (409, problem("LeaseHeld", key="k", holder="x", expiresAt=None, place=1))
    job = run(service, "k", "--wait", "600", "--quiet", "--", "true")
    while not service.calls("acquire"):
        time.sleep(0.01)
    job.send_signal(signal.SIGINT)
    assert (*job.communicate(timeout=20), job.returncode) == ("", "", 130)


def test_the_error_without_an_endpoint_says_where_to_set_it() -> None:
    words = [sys.executable, "-m", "holdfast", "run", "k", "--", "true"]
    environment = {name: value for name, value in os.environ.items() if name != "HOLDFAST_ENDPOINT"}
    ended = subprocess.run(words, env={**environment, "PYTHONPATH": str(SOURCE)}, capture_output=True, text=True)
    lines = ["holdfast: no endpoint: give --endpoint, or set HOLDFAST_ENDPOINT"]
    assert (ended.returncode, ended.stderr.splitlines()[:1]) == (64, lines)


@pytest.mark.parametrize(("words", "code"), [(["--help"], 0), (["run", "-h"], 0), ([], 64), (["status"], 64)])
def test_help_is_printed_for_a_user_who_asks(words: list[str], code: int) -> None:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    ended = subprocess.run([sys.executable, "-m", "holdfast", *words], env=environment, capture_output=True, text=True)
    assert ended.returncode == code
    assert ended.stdout.startswith("Usage: python -m holdfast run [options] KEY") == (code == 0)
    assert ended.stderr.endswith("holdfast: see python -m holdfast run --help\n") == (code == 64)
