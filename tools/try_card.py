#!/usr/bin/env python3
"""Builds, tests and measures Hearth on a machine with an NVIDIA card: try_card.py REPORT.json [--programs FOLDER] ...

Gives up after ten minutes: build, the tests of kernels and backend on the card, `hearth selftest`, an answer of the
small real model on card and processor, `hearth bench` of a model of random weights. REPORT.json has what each step said,
how long it took and how it ended; the last line printed is a sum. The exit status is 1 if a step failed.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
PROGRAMS = {
    "hearth": "app/hearth/hearth",
    "hearth_gpu_test": "tests/backend/gpu/hearth_gpu_test",
    "hearth_gpu_backend_test": "tests/backend/gpu/hearth_gpu_backend_test",
    "hearth_gpu_lost_device_test": "tests/backend/gpu/hearth_gpu_lost_device_test",
}
QUESTION = "What does mount do?"
SHAPE, MIXTURE = "qwen3.5-35b-a3b", "Q4_K_M"


class Report:
    """Runs steps and keeps what came of them."""

    def __init__(self, limit_s: float):
        self.end = time.monotonic() + limit_s
        self.steps: list[dict] = []

    def run(self, name: str, command: list, **environment: str) -> subprocess.CompletedProcess | None:
        """The finished program, or None if it failed or took too long; a step is added either way."""
        print(f"try_card: {name}", file=sys.stderr, flush=True)
        start = time.monotonic()
        step = {"step": name, "command": [str(word) for word in command], "ok": False}
        self.steps.append(step)
        try:
            done = subprocess.run(
                step["command"],
                cwd=ROOT,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=max(1.0, self.end - start),
            )
            step["ok"], step["status"] = done.returncode == 0, done.returncode
            if not step["ok"]:
                step["output"] = (done.stdout + done.stderr)[-4000:]
        except (OSError, subprocess.TimeoutExpired) as error:
            done, step["output"] = None, str(error)
        step["seconds"] = round(time.monotonic() - start, 1)
        return done

    def fail(self, message: str) -> None:
        """Makes the last step one that failed."""
        self.steps[-1].update(ok=False, output=message)

    def run_json(self, name: str, command: list) -> None:
        """A program that prints one JSON object, also where it then reports a failure."""
        done = self.run(name, command)
        if done is not None and done.stdout:
            try:
                self.steps[-1]["result"] = json.loads(done.stdout)
            except json.JSONDecodeError as error:
                self.fail(f"no JSON: {error}")


def run_tests(report: Report, program: pathlib.Path, device: str) -> None:
    """A test program on the device, with the numbers of its cases."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "cases.json"
        report.run(program.name, [program, f"--gtest_output=json:{file}"], HEARTH_TEST_GPU=device)
        if file.exists():
            cases = json.loads(file.read_text())
            failed = [
                f"{case['classname']}.{case['name']}"
                for suite in cases["testsuites"]
                for case in suite["testsuite"]
                if case.get("failures")
            ]
            report.steps[-1]["result"] = {"cases": cases["tests"], "failed": failed}


def compare_answers(report: Report, hearth: pathlib.Path, device: str) -> None:
    """The small real model says the same on the device and on the processor."""
    command = [hearth, "run", ROOT / "models/nano/nano.gguf", QUESTION, "--temperature", "0", "-n", "100", "--json"]
    answers = []
    for each in (device, "cpu"):
        done = report.run(f"answer on {each}", [*command, "--device", each])
        if done is None or done.returncode != 0:
            return
        answers.append(json.loads(done.stdout)["tokens"])
    if answers[0] != answers[1]:
        report.fail(f"the tokens differ: {answers[0]} on {device}, {answers[1]} on cpu")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=pathlib.Path, help="where the JSON report goes")
    parser.add_argument("--programs", type=pathlib.Path, help="a folder with the programs; otherwise they are built")
    parser.add_argument("--device", default="cuda", help="as of `hearth --device`")
    parser.add_argument("--shape", default=SHAPE, help="the model that is timed, as of `hearth synth`")
    parser.add_argument("--minutes", type=float, default=10, help="after which steps are given up")
    arguments = parser.parse_args()

    report = Report(60 * arguments.minutes)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    if arguments.programs is None:
        report.run("set up", [ROOT / "tools/setup.sh", "test"])
        report.run("configure", ["cmake", "--preset", "release"])
        report.run("build", ["cmake", "--build", BUILD, "--target", *PROGRAMS])
    place = {name: (arguments.programs / name if arguments.programs else BUILD / path) for name, path in PROGRAMS.items()}
    hearth = place["hearth"].resolve()
    for name, program in place.items():
        if name.endswith("_test"):
            run_tests(report, program.resolve(), arguments.device)
    report.run_json("selftest", [hearth, "selftest", "--device", arguments.device, "--json"])
    compare_answers(report, hearth, arguments.device)
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "model.gguf"
        report.run("synth", [hearth, "synth", arguments.shape, model, "--type", MIXTURE])
        bench = [hearth, "bench", model, "--device", arguments.device, "--no-check", "--draft-depth", "0", "-r", "3", "--json"]
        for n_prompt, n_decode, n_sequences in ((512, 128, 1), (8192, 32, 1), (64, 32, 16), (64, 32, 64)):
            step = f"bench {n_prompt}" + (f" of {n_sequences} sequences" if n_sequences > 1 else "")
            report.run_json(step, [*bench, "-p", str(n_prompt), "-n", str(n_decode), "--parallel", str(n_sequences)])

    failed = [step["step"] for step in report.steps if not step["ok"]]
    whole = {"commit": commit.stdout.strip(), "device": arguments.device, "failed": failed, "steps": report.steps}
    arguments.report.write_text(json.dumps(whole, indent=2) + "\n")
    names = f": {', '.join(failed)}" if failed else ""
    print(f"try_card: {len(report.steps) - len(failed)} steps went well, {len(failed)} failed{names}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
