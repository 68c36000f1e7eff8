"""What `make results` runs, `results.py OUT NL [papermill's options]`: one progress bar, then three lines."""
import os, re, shutil, subprocess, sys, time
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def bar_states(stream):
    "Each state of the bars that a notebook writes: what it writes, cut at returns, line ends and cursor movements."
    rest = b""
    while chunk := os.read(stream.fileno(), 65536):
        *whole, rest = re.split(rb"[\r\n]+|\x1b\[[0-9;]*[A-Za-z]", rest + chunk)
        yield from (piece.decode(errors="replace").strip() for piece in (*whole, rest) if piece.strip())


def show(text):
    "Writes over the line of the bar; in a file or a pipe, one line each."
    width = shutil.get_terminal_size().columns - 1
    if sys.stdout.isatty(): print(f"\r{text[:width]:{width}}\r", end="", flush=True)
    elif text: print(text, flush=True)


def main(out, nl, *options):
    "Runs the notebook -> exit code."
    start = time.time()
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    executed = out / f"nl{nl}.ipynb"
    log = out / "papermill.log"
    quiet = ["--no-progress-bar", "--log-level", "ERROR", "--stderr-file", "-"] # "-": the bars come on stdout
    notebook = str(ROOT / "nbs" / "10_results.ipynb")
    command = ["papermill", *quiet, notebook, str(executed), "-p", "nl", nl, "-p", "out", str(out), *options]
    pace = {"OMP_WAIT_POLICY": "PASSIVE"} # threads that wait do not spin on a busy machine
    if sys.stdout.isatty(): pace["TQDM_MININTERVAL"] = "0.5"
    show(f"starting nbs/10_results.ipynb with nl = {nl}")
    with open(log, "wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env={**pace, **os.environ})
        try:
            for state, _ in groupby(bar_states(process.stdout)): show(state) # each state once
        except KeyboardInterrupt: pass # papermill has it too, and says so in the log
    if process.wait():
        reason = log.read_text(errors="replace")
        print(f"\n{reason}\n==> the run failed; {executed} holds what was done", file=sys.stderr)
        return process.returncode
    data, *lines = (out / "summary.txt").read_text(encoding="utf-8").splitlines()
    show("") # the bar makes room
    print(f"{executed} in {time.time() - start:.0f} s: {data}")
    for line in lines:
        if not line.startswith("  "): print(line) # those are the files of the run


if __name__ == "__main__": sys.exit(main(*sys.argv[1:]))
