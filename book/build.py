"""What `make book` runs: pages from the committed notebooks and the library, then Jupyter Book. Nothing is executed."""
import ast, json, os, re, shutil, subprocess, sys, time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SRC = HERE / "_build" / "pages"
CODE = "https://github.com/logsig-fraud/logsig_fraud/blob/main"
PARTS = {".": "The method", "detector": "Your own transactions", "studies": "What we found"}


def notebooks():
    "Folder -> its notebooks, in reading order."
    found = sorted(p.relative_to(ROOT / "nbs") for p in (ROOT / "nbs").rglob("[!_]*.ipynb"))
    chapters = [p for p in found if p.stem not in ("index", "tour")]
    return {folder: [p for p in chapters if str(p.parent) == folder] for folder in PARTS}


def linked(text, page, names):
    "Prose with links: `studies/07_leaderboard` leads to that chapter, a file of the repository to its address."
    def chapter(match):
        name = match[1].removeprefix("nbs/").removesuffix(".ipynb")
        near = [n for n in (name, str(page.parent / name)) if n in names]
        return f"[{match[1]}]({os.path.relpath(f'{near[0]}.ipynb', page.parent)})" if near else match[0]
    def file(match):
        target = match[1]
        if target.startswith("nbs/"): return f"]({os.path.relpath(target.removeprefix('nbs/'), page.parent)})"
        near = (ROOT / "nbs" / page.parent / target).exists()
        return f"]({CODE}/{target})" if not near and (ROOT / target).exists() else match[0]
    text = re.sub(r"\]\(([^)#:\s]+)\)", file, text)
    return re.sub(r"(?<![\[`])`((?:nbs/)?(?:\w+/)?\d\d[a-z]?_\w+(?:\.ipynb)?)`(?!\])", chapter, text)


def is_test(source):
    "Whether a cell does nothing but test."
    lines = [line for line in source.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return sum(bool(re.match(r"\s*(assert\b|test_\w+\(|with .*raises)", line)) for line in lines) * 2 >= len(lines)


def shown(cell, page, names):
    "A cell as the book has it, or None: hidden ones and imports are left out, tests are folded, directives dropped."
    source = "".join(cell["source"])
    if cell["cell_type"] == "raw": return None
    if cell["cell_type"] == "markdown": return {**cell, "source": linked(source, page, names)}
    if re.search(r"^#\|\s*(hide|default_exp)\b", source, re.M): return None
    if all(re.match(r"(from|import|#|\s|\)|_all_|$)", line) for line in source.splitlines()): return None # imports
    tags = ["hide-input" if cell["outputs"] else "hide-cell"] if is_test(source) else []
    source = re.sub(r"^#\|.*\n?", "", source, flags=re.M)
    return {**cell, "source": source, "metadata": {"tags": tags}} if source.strip() else None


def copy_notebook(page, names):
    "Writes one notebook as a page."
    notebook = json.loads((ROOT / "nbs" / page).read_text(encoding="utf-8"))
    cells = (shown(cell, page, names) for cell in notebook["cells"])
    notebook["cells"] = [cell for cell in cells if cell]
    notebook["metadata"]["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    (SRC / page).parent.mkdir(parents=True, exist_ok=True)
    (SRC / page).write_text(json.dumps(notebook), encoding="utf-8")


def safe(text): return str(text).replace("|", "\\|")


def comment(lines, number):
    "The comment at the end of a line, which says what a parameter is."
    return safe(lines[number - 1].partition(" # ")[2].strip())


def table(head, rows):
    "A table as Markdown, or nothing if it has no rows."
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines) if rows else ""


def parameters(function, lines):
    "Name, type, default and meaning of each parameter, and what comes back."
    args = function.args
    positional = args.posonlyargs + args.args
    defaults = dict(zip([a.arg for a in positional[::-1]], args.defaults[::-1]))
    defaults |= {a.arg: d for a, d in zip(args.kwonlyargs, args.kw_defaults) if d}
    def row(arg, stars=""):
        kind = safe(ast.unparse(arg.annotation)) if arg.annotation else ""
        value = f"`{safe(ast.unparse(defaults[arg.arg]))}`" if arg.arg in defaults else ""
        return f"`{stars}{arg.arg}`", kind, value, comment(lines, arg.lineno) if arg.lineno > function.lineno else ""
    rows = [row(a) for a in positional + args.kwonlyargs if a.arg not in ("self", "cls")]
    rows += [row(a, stars) for a, stars in ((args.vararg, "*"), (args.kwarg, "**")) if a]
    last = function.body[0].lineno - 1 # the line that closes the signature
    meaning = comment(lines, last) if lines[last - 1].startswith(")") else ""
    kind = safe(ast.unparse(function.returns)) if function.returns else ""
    if kind or meaning: rows.append(("*returns*", kind, "", meaning))
    return table(["parameter", "type", "default", "meaning"], rows)


def symbol(node, lines):
    "One function or class as Markdown."
    text = [ast.get_docstring(node) or ""]
    if isinstance(node, ast.FunctionDef):
        first = [a for a in node.args.args[:1] if a.arg in ("self", "cls") and a.annotation] # a patched method
        name = f"{ast.unparse(first[0].annotation)}.{node.name}" if first else node.name
        return "\n\n".join([f"## {name}", *text, parameters(node, lines)])
    fields = [(f"`{f.target.id}`", safe(ast.unparse(f.annotation)), comment(lines, f.lineno))
              for f in node.body if isinstance(f, ast.AnnAssign)]
    text.append(table(["field", "type", "meaning"], fields))
    text += [parameters(m, lines) for m in node.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"]
    return "\n\n".join([f"## {node.name}", *text])


def api_page(module):
    "Writes the page of one module -> its path, or None if it has nothing public."
    source = module.read_text(encoding="utf-8")
    tree, lines = ast.parse(source), source.splitlines()
    nodes = [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and not n.name.startswith("_")]
    if not nodes: return None
    name = ".".join(module.relative_to(ROOT / "logsig_fraud").with_suffix("").parts)
    page = Path("api", f"{name}.md")
    head = [f"# {name}", f"`from logsig_fraud.{name} import ...`", ast.get_docstring(tree) or ""]
    text = "\n\n".join([*head, *(symbol(n, lines) for n in nodes)])
    (SRC / page).write_text(text + "\n", encoding="utf-8")
    return page


def write_pages():
    "All pages -> chapters by part, pages of the API."
    chapters = notebooks()
    names = {str(p.with_suffix("")) for pages in chapters.values() for p in pages}
    shutil.rmtree(SRC, ignore_errors=True)
    shutil.copytree(HERE, SRC, ignore=shutil.ignore_patterns("_build", "*.py", "*.txt"))
    shutil.copytree(ROOT / "nbs" / "images", SRC / "images")
    for page in [Path("tour.ipynb"), *sum(chapters.values(), [])]: copy_notebook(page, names)
    front = (ROOT / "README.md").read_text(encoding="utf-8")
    (SRC / "intro.md").write_text(linked(front, Path("intro.md"), names), encoding="utf-8")
    (SRC / "api").mkdir()
    modules = sorted((ROOT / "logsig_fraud").rglob("[!_]*.py"), key=lambda p: (len(p.parts), p))
    return chapters, [page for module in modules if (page := api_page(module))]


def contents(chapters, api):
    "The table of contents, from the notebooks that there are."
    def files(pages): return [{"file": str(Path(page).with_suffix(""))} for page in pages]
    parts = [{"caption": "Start", "chapters": files(["tour.ipynb"])}]
    parts += [{"caption": title, "chapters": files(chapters[folder])} for folder, title in PARTS.items()]
    data = files(sorted(p.relative_to(SRC) for p in (SRC / "sheets").glob("*.md")))
    reference = [{"file": "api", "sections": files(api)}, {"file": "data", "sections": data}, {"file": "glossary"}]
    return {"format": "jb-book", "root": "intro", "parts": [*parts, {"caption": "Reference", "chapters": reference}]}


def main():
    "Writes the pages and builds the book; a warning is an error -> exit code."
    start = time.time()
    (SRC.parent).mkdir(exist_ok=True)
    toc = contents(*write_pages())
    (SRC / "_toc.yml").write_text(json.dumps(toc), encoding="utf-8") # JSON is YAML
    jupyter_book = str(Path(sys.executable).with_name("jupyter-book"))
    command = [jupyter_book, "build", "-W", "--keep-going", "-q", "--path-output", str(HERE), str(SRC)]
    if code := subprocess.run(command, cwd=HERE).returncode: return code
    print(f"==> book/_build/html/index.html in {time.time() - start:.0f} s")


if __name__ == "__main__": sys.exit(main())
