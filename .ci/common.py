"""What the checks share: the notebooks in the order of the listing, and commands that end in time."""
import os, re, signal, subprocess, tempfile, time
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parent.parent
NBS = sorted((p for p in (ROOT / "nbs").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts),
             key=lambda p: (len(p.relative_to(ROOT / "nbs").parts), str(p)))
LIMIT = 600 # seconds for one command; the longest notebook takes a tenth of it
LIVE = set() # commands that are running


def directives(cell):
    return set(re.findall(r"^#\|\s*(\w+)", cell.source, re.M)) if cell.cell_type == "code" else set()


def code_cells(path):
    return [c for c in nbformat.read(path, 4).cells if c.cell_type == "code"]


def end(process):
    "Ends a command and its group, after Python has said where each thread stands -> whether anything was left."
    LIVE.discard(process)
    left = False
    for sign, pause in ((signal.SIGABRT, 2), (signal.SIGKILL, 0)):
        try: os.killpg(process.pid, sign)
        except ProcessLookupError: break
        left = True
        time.sleep(pause)
    process.wait()
    return left


def limited(command, seconds=LIMIT, env=(), without=(), **options):
    "Runs a command in its own group of processes -> (exit code, or None if it was not done in time; output)."
    variables = {**os.environ, "PYTHONFAULTHANDLER": "1", **dict(env)}
    for name in without: variables.pop(name, None)
    # a file, not a pipe: what outlives the command cannot hold it open
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                                   env=variables, **options)
        LIVE.add(process)
        code = None
        try: code = process.wait(seconds)
        except subprocess.TimeoutExpired: pass
        finally: left = end(process)
        output.seek(0)
        note = "\n(it left processes behind, which were ended)" if left and code is not None else ""
        return code, output.read() + note


def trouble(command, **options):
    "Runs a command -> what went wrong, or ''."
    code, output = limited(command, **options)
    if code == 0: return ""
    return f"{'not done in time' if code is None else f'ended with code {code}'}: {output[-2000:]}"


def give_up(*_):
    "What was started ends with us."
    for process in list(LIVE): end(process)
    os._exit(130)
