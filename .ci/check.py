"""What `make test` runs: every notebook's tests, then the checks that keep notebooks, library and README together."""
import ast, difflib, importlib.util, os, re, shutil, signal, subprocess, sys, tempfile, time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from configparser import ConfigParser
from pathlib import Path

import nbformat
from nbconvert import MarkdownExporter

import house, prose
from common import LIMIT, NBS, ROOT, code_cells, directives, give_up, limited

PAPERMILL = [p for p in NBS if p.stem in ("10_results", "09_benchmarks", "10_benchmarks_use")]
HUNG = [] # notebooks that were not done in time
SMOKE = dict(quick=True, source="simulated", nl=520, n_unlabelings=1, seed=3)


def has_file(variable, pattern):
    "Whether a variable names a file, or data/ has one."
    given = os.environ.get(variable)
    if given: os.environ[variable] = str(Path(given).absolute()) # the notebooks run in another folder
    return Path(given).is_file() if given else any((ROOT / "data").glob(pattern))


def available_flags():
    "The test flags, and which of them this machine can serve."
    parser = ConfigParser(delimiters=["="])
    parser.read(ROOT / "settings.ini", encoding="utf-8")
    data = has_file("BANKSIM_CSV", "bs140513_032310*")
    datasets = all([has_file("HANDBOOK_PARQUET", "handbook.parquet"), has_file("SFFSD_CSV", "s-ffsd.csv.xz")])
    signatory = importlib.util.find_spec("signatory") is not None
    redis = shutil.which("redis-server") is not None
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    browser = bool(chromium) and all(importlib.util.find_spec(name) for name in ("panel", "playwright"))
    here = dict(data=data, datasets=datasets, signatory=signatory, slow=bool(os.environ.get("SLOW")), gpu=False, redis=redis,
                browser=browser)
    if importlib.util.find_spec("torch"):
        import torch
        here["gpu"] = torch.cuda.is_available()
    return {flag: here[flag] for flag in parser["DEFAULT"]["tst_flags"].split()}


def run_notebook(path, flags):
    "nbdev_test in a process of its own; what hangs is tried once more -> (notebook, its failure or '')."
    start = time.time()
    wanted = " ".join(flag for flag, on in flags.items() if on)
    command = ["nbdev_test", "--path", str(path), "--n_workers", "0", "--flags", wanted]
    for _ in range(2):
        code, output = limited(command, cwd=ROOT)
        if code is not None: break
        print(f"==> {path.name} was not done after {LIMIT} s:\n{output}", flush=True)
        HUNG.append(path.name)
    failure = "not done in time, twice" if code is None else f"ended with code {code}" if code else ""
    details = f", {failure}\n{output}" if failure or "left processes" in output else ""
    print(f"{path.name}: {time.time() - start:.0f} s{details}", flush=True)
    return path.name, failure


def run_notebooks(flags):
    "All notebooks, two at a time."
    with ThreadPoolExecutor(2) as pool: return list(pool.map(lambda p: run_notebook(p, flags), NBS))


def skipped_cells(flags):
    off = {flag for flag, on in flags.items() if not on}
    return [(p.name, flag) for p in NBS for cell in code_cells(p) for flag in directives(cell) & off]


def sources(folder):
    "The notebooks and modules in a folder -> their bytes by path."
    found = [p for pattern in ("nbs/**/*.ipynb", "logsig_fraud/**/*.py") for p in Path(folder).glob(pattern)]
    return {p.relative_to(folder): p.read_bytes() for p in found if ".ipynb_checkpoints" not in p.parts}


def copied(command):
    "Runs `command` in a copy of the project -> the files that it would change."
    skip = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
    with tempfile.TemporaryDirectory() as tmp:
        for name in ("nbs", "logsig_fraud"): shutil.copytree(ROOT / name, Path(tmp, name), ignore=skip)
        for name in ("settings.ini", "setup.py"): shutil.copy(ROOT / name, tmp)
        subprocess.run(command, cwd=tmp, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        new = sources(tmp)
    old = sources(ROOT)
    return ", ".join(str(p) for p in sorted(new.keys() | old.keys()) if new.get(p) != old.get(p))


def check_export(): return (diff := copied(["nbdev_export"])) and f"run `make notebooks`: {diff} would change"
def check_clean(): return (diff := copied(["nbdev_clean"])) and f"run `make notebooks`: {diff} would change"


def spoken(cell):
    "A cell with `#| echo: false` as what it prints: its Markdown alone."
    if "echo" not in directives(cell): return cell
    shown = [o.data["text/markdown"] for o in cell.outputs if "text/markdown" in o.get("data", {})]
    return nbformat.v4.new_markdown_cell("\n".join(shown))


def readme():
    "index.ipynb as Markdown, without its hidden cells."
    nb = nbformat.read(ROOT / "nbs" / "index.ipynb", 4)
    nb.cells = [spoken(c) for c in nb.cells if "hide" not in directives(c)]
    nb.metadata.language_info = {"name": "python"}
    body, _ = MarkdownExporter().from_notebook_node(nb)
    return re.sub(r"\]\(images/", "](nbs/images/", body).strip() + "\n"


def check_readme():
    old = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = difflib.unified_diff(old.splitlines(), readme().splitlines(), lineterm="", n=0)
    change = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
    return change and f"run `make readme`: {len(change)} lines differ from index.ipynb, first {change[0]!r}"


def check_tags():
    "One cell is tagged `parameters`, it is still tagged after cleaning, and it holds literals only."
    from nbdev.clean import clean_nb
    for path in PAPERMILL:
        nb = nbformat.read(path, 4)
        clean_nb(nb, allowed_cell_metadata_keys=["tags"])
        cells = [c for c in nb.cells if "parameters" in c.metadata.get("tags", [])]
        if len(cells) != 1: return f"{path.name} has {len(cells)} cells tagged 'parameters'"
        for statement in ast.parse(cells[0].source).body: ast.literal_eval(statement.value)


def papermill(path, folder, **parameters):
    "Runs a notebook as a user would, from another folder -> (exit code, output)."
    given = [word for name, value in parameters.items() for word in ("-p", name, str(value))]
    command = ["papermill", str(path), str(Path(folder, "out.ipynb")), *given, "-p", "out", str(folder)]
    return limited(command, cwd=folder, env={"OMP_WAIT_POLICY": "PASSIVE"}) # threads that wait do not spin on a busy machine


def check_papermill():
    with tempfile.TemporaryDirectory() as tmp:
        code, output = papermill(ROOT / "nbs" / "10_results.ipynb", tmp, **SMOKE)
        return code != 0 and f"ended with code {code}: {output[-2000:]}"


def check_parameters():
    "A wrong value, a misspelt name and a lost tag each stop the run."
    path = ROOT / "nbs" / "10_results.ipynb"
    with tempfile.TemporaryDirectory() as tmp:
        untagged = nbformat.read(path, 4)
        for cell in untagged.cells: cell.metadata.pop("tags", None)
        nbformat.write(untagged, Path(tmp, "untagged.ipynb"))
        trials = ((path, dict(nl=0), "nl = 0 is not allowed"), (path, dict(n1=520), "unknown parameter 'n1'"),
                  (Path(tmp, "untagged.ipynb"), dict(nl=520), "tagged 'parameters' is missing"))
        for notebook, given, lesson in trials:
            code, output = papermill(notebook, tmp, **{"source": "simulated", **given})
            if code and lesson in output: continue
            return f"{notebook.name} with {given} ended with code {code}, not with {lesson!r}"


CHECKS = {"library agrees with notebooks": check_export, "notebooks are clean": check_clean,
          "README.md agrees with index.ipynb": check_readme, "parameter cells": check_tags,
          "wrong parameters are refused": check_parameters, "papermill runs 10_results": check_papermill,
          **prose.CHECKS, **house.CHECKS}


def run_check(name, check):
    "Runs one check -> (its name, its failure or '')."
    start = time.time()
    try: failure = check() or ""
    except Exception as e: failure = f"{type(e).__name__}: {e}"
    print(f"==> {name}: {'FAILED: ' + failure if failure else 'ok'} ({time.time() - start:.0f} s)", flush=True)
    return name, failure


def main():
    "All notebooks, all checks, and what came of them -> whether anything failed."
    for sign in (signal.SIGINT, signal.SIGTERM): signal.signal(sign, give_up)
    flags = available_flags()
    print(f"==> notebooks; flags on: {' '.join(f for f, on in flags.items() if on) or 'none'}", flush=True)
    outcome = run_notebooks(flags) + [run_check(name, check) for name, check in CHECKS.items()]
    skipped = skipped_cells(flags)
    for flag, count in sorted(Counter(flag for _, flag in skipped).items()):
        print(f"==> skipped for want of '{flag}': {count} cells")
    for name in HUNG: print(f"==> not done after {LIMIT} s and tried again: {name}")
    failed = [name for name, failure in outcome if failure]
    for name in failed: print(f"==> FAILED: {name}")
    more = f", {len(skipped)} skipped" if skipped else ""
    print(f"{len(outcome) - len(failed)} passed, {len(failed)} failed{more}")
    return bool(failed)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write-readme"]: (ROOT / "README.md").write_text(readme(), encoding="utf-8")
    else: sys.exit(main())
