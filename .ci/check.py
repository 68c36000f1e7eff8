"""What `make test` runs: every notebook's tests, then the checks that keep notebooks, library, README and parameters together."""
import ast, difflib, importlib.util, os, re, shutil, signal, subprocess, sys, tempfile, time
from concurrent.futures import ThreadPoolExecutor
from configparser import ConfigParser
from pathlib import Path

import nbformat
from nbconvert import MarkdownExporter

ROOT = Path(__file__).resolve().parent.parent
NBS = sorted((p for p in (ROOT / "nbs").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts),
             key=lambda p: (len(p.relative_to(ROOT / "nbs").parts), str(p))) # the order of the listing
PAPERMILL = [p for p in NBS if p.stem in ("10_results", "09_benchmarks", "10_benchmarks_use")]
LIMIT = 600 # seconds for one notebook; the longest takes a tenth of it
LIVE, HUNG = set(), [] # commands that are running; notebooks that were not done in time
SMOKE = dict(quick=True, source="simulated", nl=520, n_unlabelings=1, seed=3)


def directives(cell):
    return set(re.findall(r"^#\|\s*(\w+)", cell.source, re.M)) if cell.cell_type == "code" else set()


def available_flags():
    "The test flags, and which of them this machine can serve."
    parser = ConfigParser(delimiters=["="])
    parser.read(ROOT / "settings.ini", encoding="utf-8")
    given = os.environ.get("BANKSIM_CSV")
    if given: os.environ["BANKSIM_CSV"] = str(Path(given).absolute()) # the notebooks run in another folder
    data = Path(given).is_file() if given else any((ROOT / "data").glob("bs140513_032310*"))
    here = dict(data=data, signatory=importlib.util.find_spec("signatory") is not None, slow=bool(os.environ.get("SLOW")), gpu=False,
                redis=shutil.which("redis-server") is not None)
    if importlib.util.find_spec("torch"):
        import torch
        here["gpu"] = torch.cuda.is_available()
    return {flag: here[flag] for flag in parser["DEFAULT"]["tst_flags"].split()}


def end(process):
    "Ends a command and what is left of its group, after Python has said where each thread stands -> whether anything was left."
    LIVE.discard(process)
    left = False
    for sign, pause in ((signal.SIGABRT, 2), (signal.SIGKILL, 0)):
        try: os.killpg(process.pid, sign)
        except ProcessLookupError: break
        left = True
        time.sleep(pause)
    process.wait()
    return left


def limited(command, seconds=LIMIT, env=(), **options):
    "Runs a command in its own group of processes -> (exit code, or None if it was not done in time; output)."
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said: # a file, not a pipe: what outlives the command cannot hold it open
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, start_new_session=True, env={**os.environ, "PYTHONFAULTHANDLER": "1", **dict(env)}, **options)
        LIVE.add(process)
        code = None
        try: code = process.wait(seconds)
        except subprocess.TimeoutExpired: pass
        finally: left = end(process)
        said.seek(0)
        return code, said.read() + ("\n(it left processes behind, which were ended)" if left and code is not None else "")


def give_up(*_):
    "What was started ends with us."
    for process in list(LIVE): end(process)
    os._exit(130)


def run_notebook(path, flags):
    "nbdev_test with one thread in a process of its own; what hangs is tried once more -> (notebook, its failure or '')."
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    command, start = ["nbdev_test", "--path", str(path), "--n_workers", "0", "--flags", " ".join(f for f, on in flags.items() if on)], time.time()
    for _ in range(2):
        code, said = limited(command, env=threads, cwd=ROOT)
        if code is not None: break
        print(f"==> {path.name} was not done after {LIMIT} s:\n{said}", flush=True)
        HUNG.append(path.name)
    trouble = "not done in time, twice" if code is None else f"ended with code {code}" if code else ""
    print(f"{path.name}: {time.time() - start:.0f} s" + (f", {trouble}\n{said}" if trouble or "left processes" in said else ""), flush=True)
    return path.name, trouble


def run_notebooks(flags):
    "All notebooks, two at a time."
    with ThreadPoolExecutor(2) as pool: return list(pool.map(lambda p: run_notebook(p, flags), NBS))


def skipped_cells(flags):
    return [(p.name, flag) for p in NBS for c in nbformat.read(p, 4).cells for flag in directives(c) & {f for f, on in flags.items() if not on}]


def copied(command):
    "Runs `command` in a copy of the project -> the files that it would change."
    with tempfile.TemporaryDirectory() as tmp:
        for name in ("nbs", "logsig_fraud"): shutil.copytree(ROOT / name, Path(tmp, name), ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"))
        for name in ("settings.ini", "setup.py"): shutil.copy(ROOT / name, tmp)
        subprocess.run(command, cwd=tmp, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        new = {p.relative_to(tmp): p.read_bytes() for f in ("nbs/**/*.ipynb", "logsig_fraud/**/*.py") for p in Path(tmp).glob(f)}
    old = {p.relative_to(ROOT): p.read_bytes() for f in ("nbs/**/*.ipynb", "logsig_fraud/**/*.py") for p in ROOT.glob(f) if ".ipynb_checkpoints" not in p.parts}
    return ", ".join(str(p) for p in sorted(new.keys() | old.keys()) if new.get(p) != old.get(p))


def check_export(): return (diff := copied(["nbdev_export"])) and f"run `make notebooks`: {diff} would change"
def check_clean(): return (diff := copied(["nbdev_clean"])) and f"run `make notebooks`: {diff} would change"


def spoken(cell):
    "A cell with `#| echo: false` as what it prints: its Markdown alone."
    if "echo" not in directives(cell): return cell
    return nbformat.v4.new_markdown_cell("\n".join(o.data["text/markdown"] for o in cell.outputs if "text/markdown" in o.get("data", {})))


def readme():
    "index.ipynb as Markdown, without its hidden cells."
    nb = nbformat.read(ROOT / "nbs" / "index.ipynb", 4)
    nb.cells = [spoken(c) for c in nb.cells if "hide" not in directives(c)]
    nb.metadata.language_info = {"name": "python"}
    body, _ = MarkdownExporter().from_notebook_node(nb)
    return re.sub(r"\]\(images/", "](nbs/images/", body).strip() + "\n"


def check_readme():
    old = (ROOT / "README.md").read_text(encoding="utf-8")
    change = [line for line in difflib.unified_diff(old.splitlines(), readme().splitlines(), lineterm="", n=0) if not line.startswith(("---", "+++", "@@"))]
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
    return limited(command, cwd=folder)


def check_papermill():
    with tempfile.TemporaryDirectory() as tmp:
        code, said = papermill(ROOT / "nbs" / "10_results.ipynb", tmp, **SMOKE)
        return code != 0 and f"ended with code {code}: {said[-2000:]}"


def check_parameters():
    "A wrong value, a misspelt name and a lost tag each stop the run."
    path = ROOT / "nbs" / "10_results.ipynb"
    with tempfile.TemporaryDirectory() as tmp:
        untagged = nbformat.read(path, 4)
        for cell in untagged.cells: cell.metadata.pop("tags", None)
        nbformat.write(untagged, Path(tmp, "untagged.ipynb"))
        for notebook, given, lesson in ((path, dict(nl=0), "nl = 0 is not allowed"), (path, dict(n1=520), "unknown parameter 'n1'"),
                                        (Path(tmp, "untagged.ipynb"), dict(nl=520), "tagged 'parameters' is missing")):
            code, said = papermill(notebook, tmp, **{"source": "simulated", **given})
            if not code or lesson not in said: return f"{notebook.name} with {given} ended with code {code}, not with {lesson!r}"


CHECKS = {"library agrees with notebooks": check_export, "notebooks are clean": check_clean, "README.md agrees with index.ipynb": check_readme,
          "parameter cells": check_tags, "wrong parameters are refused": check_parameters, "papermill runs 10_results": check_papermill}


def main():
    for sign in (signal.SIGINT, signal.SIGTERM): signal.signal(sign, give_up)
    flags = available_flags()
    print(f"==> notebooks; flags on: {' '.join(f for f, on in flags.items() if on) or 'none'}", flush=True)
    outcome = run_notebooks(flags)
    for name, check in CHECKS.items():
        start = time.time()
        try: outcome.append((name, check() or ""))
        except Exception as e: outcome.append((name, f"{type(e).__name__}: {e}"))
        print(f"==> {name}: {'FAILED: ' + outcome[-1][1] if outcome[-1][1] else 'ok'} ({time.time() - start:.0f} s)", flush=True)
    skipped = skipped_cells(flags)
    for flag in sorted({f for _, f in skipped}): print(f"==> skipped for want of '{flag}': {sum(f == flag for _, f in skipped)} cells")
    for name in HUNG: print(f"==> not done after {LIMIT} s and tried again: {name}")
    failed = [name for name, trouble in outcome if trouble]
    for name in failed: print(f"==> FAILED: {name}")
    print(f"{len(outcome) - len(failed)} passed, {len(failed)} failed" + (f", {len(skipped)} skipped" if skipped else ""))
    return bool(failed)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write-readme"]: (ROOT / "README.md").write_text(readme(), encoding="utf-8")
    else: sys.exit(main())
