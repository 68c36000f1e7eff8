"""Checks of the house: reading order, the quick top level, results files, the wheel, the command that a user types."""
import ast, re, shutil, sys, tempfile, warnings
from pathlib import Path

import nbformat

from common import NBS, ROOT, code_cells, trouble

TOP_LEVEL = ("FraudDetector", "OnlineScorer", "Columns", "preset", "load_dataset")
EXTRAS = ("dask", "distributed", "redis", "captum", "lightgbm", "ot", "kagglehub", "fastapi", "uvicorn",
          "prometheus_client", "panel", "bokeh", "param", "playwright", "skactiveml") # modules that only extras install


def exported_module(path):
    "The module that a notebook exports to, such as 'logsig_fraud.detector.online', or None."
    found = (re.search(r"^#\|\s*default_exp\s+(\S+)", cell.source, re.M) for cell in code_cells(path))
    return next((f"logsig_fraud.{match[1]}" for match in found if match), None)


def parsed(cell):
    "A cell without magics as a syntax tree."
    return ast.parse("\n".join("" if line.startswith(("%", "!")) else line for line in cell.source.splitlines()))


def imported_names(cell):
    "The dotted names that a cell imports, such as 'logsig_fraud.core.preset'."
    for node in ast.walk(parsed(cell)):
        if isinstance(node, ast.Import): yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom): yield from (f"{node.module}.{alias.name}" for alias in node.names)


def check_order():
    "A notebook imports only from notebooks above it, and from its own module. The front page and the tour may import from all."
    from logsig_fraud import _MODULES
    place = {module: i for i, path in enumerate(NBS) if (module := exported_module(path))}
    top = {f"logsig_fraud.{name}": f"logsig_fraud.{module}" for name, module in _MODULES.items()}
    wrong = []
    for i, path in enumerate(NBS):
        if path.stem in ("index", "tour"): continue
        names = {top.get(name, name) for cell in code_cells(path) for name in imported_names(cell)}
        modules = {name if name in place else name.rpartition(".")[0] for name in names} & set(place)
        wrong += [f"{path.name} imports {m} of {NBS[place[m]].name}" for m in sorted(modules) if place[m] > i]
    return "; ".join(wrong)


def check_top_level():
    "`import logsig_fraud` and its core load nothing slow, and every name of the top level can be imported."
    light = "import sys, logsig_fraud.core; slow = {'numpy', 'pandas', 'torch'} & {*sys.modules}; assert not slow, slow"
    names = f"from logsig_fraud import {', '.join(TOP_LEVEL)}"
    return trouble([sys.executable, "-c", light]) or trouble([sys.executable, "-c", names])


def literal(text):
    "A value as `preset_name` writes it."
    try: return ast.literal_eval(text)
    except (ValueError, SyntaxError): return text


def check_preset(name):
    "The name of a preset in a results file, such as 'authors, bands=all', is a configuration."
    from logsig_fraud.core import preset
    if name.startswith("scaling study"): return
    change = r", (\w+)=(\([^()]*\)|[^,()]+)"
    if not re.fullmatch(rf"\w+({change})*", name): raise ValueError(f"the preset {name!r} cannot be read")
    preset(name.split(",")[0], **{field: literal(value) for field, value in re.findall(change, name)})


def check_file(path):
    "A file of results can be read, without a warning, and names configurations that exist."
    import pandas as pd
    from logsig_fraud.results_store import COLUMNS, read_results
    tidy = set(COLUMNS) == set(pd.read_csv(path, nrows=0))
    rows = read_results(path) if tidy else pd.read_csv(path)
    if not len(rows): raise ValueError("no rows")
    for name in rows.preset.unique() if "preset" in rows else (): check_preset(name)


def check_results():
    with warnings.catch_warnings(action="error"):
        for path in sorted((ROOT / "results").glob("*.csv")):
            try: check_file(path)
            except Exception as e: return f"{path.name}: {type(e).__name__}: {e}"


IMPORT_ALL = f"""
import sys
for name in {EXTRAS}: sys.modules[name] = None # as if no extra were installed
import importlib, pkgutil, logsig_fraud
modules = [m.name for m in pkgutil.walk_packages(logsig_fraud.__path__, "logsig_fraud.")]
for name in modules: importlib.import_module(name)
from logsig_fraud.comparison import published
assert logsig_fraud.__file__.startswith(sys.prefix), logsig_fraud.__file__
assert len(modules) > 30 and len(published()) > 0
"""


def check_wheel():
    "All modules of the wheel import, without the checkout and without the extras, and its data is there."
    with tempfile.TemporaryDirectory() as tmp:
        source = Path(tmp, "source")
        venv = Path(tmp, "venv")
        python = str(venv / "bin" / "python")
        shutil.copytree(ROOT / "logsig_fraud", source / "logsig_fraud", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("settings.ini", "setup.py", "README.md"): shutil.copy(ROOT / name, source)
        pip = [sys.executable, "-m", "pip"]
        build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp, str(source)]
        if wrong := trouble(build): return wrong
        wheel = str(next(Path(tmp).glob("*.whl")))
        for command in ([sys.executable, "-m", "venv", "--without-pip", str(venv)],
                        [*pip, "--python", python, "install", "--no-deps", "--no-index", wheel]):
            if wrong := trouble(command): return wrong
        # then the packages of the present environment, without its .pth files, one of which leads to the checkout
        packages = next(venv.glob("lib/python*/site-packages"))
        Path(packages, "requirements.pth").write_text(str(Path(nbformat.__file__).parent.parent))
        return trouble([python, "-I", "-c", IMPORT_ALL], cwd=tmp)


def check_plain_command():
    "`nbdev_test` as a user types it, no variable set, passes in time; each of its workers has one thread."
    probe = "import torch\nimport logsig_fraud\nassert torch.get_num_threads() == 1, torch.get_num_threads()"
    unset = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    with tempfile.TemporaryDirectory() as tmp:
        for name in ("one", "two"):
            notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(probe)])
            nbformat.write(notebook, Path(tmp, f"{name}.ipynb"))
        return (trouble(["nbdev_test", "--path", tmp], seconds=60, without=unset, cwd=ROOT)
                or trouble(["nbdev_test", "--file_glob", "0[46]a_*.ipynb"], seconds=180, without=unset, cwd=ROOT))


CHECKS = {"reading order": check_order, "quick top level": check_top_level, "results files": check_results,
          "the wheel imports": check_wheel, "plain nbdev_test": check_plain_command}


if __name__ == "__main__": # one check by its name, or a piece of it
    for name, check in CHECKS.items():
        if not sys.argv[1:] or sys.argv[1] in name: print(f"{name}: {check() or 'ok'}")
