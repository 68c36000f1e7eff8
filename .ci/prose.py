"""Checks of the words: spelling, links and references to notebooks, the length of sentences, outputs that are complete."""
import re, sys, tempfile
from pathlib import Path

import nbformat

from common import NBS, ROOT, trouble

LONGEST = 24 # words, which 90 % of a notebook's sentences do not exceed
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "kaggle/README.md", "book/data.md")]
REFERENCE = re.compile(r"(?<![\w/.])((?:nbs/)?(?:\w+/)?\d\d[a-z]?_[a-z]\w+)(?:\.ipynb)?") # such as studies/07_leaderboard


def prose(path):
    "The text of a page, or of a notebook's Markdown cells."
    if path.suffix == ".md": return path.read_text(encoding="utf-8")
    return "\n\n".join(c.source for c in nbformat.read(path, 4).cells if c.cell_type == "markdown")


def short(path): return str(path.relative_to(ROOT))


def check_spelling():
    with tempfile.TemporaryDirectory() as tmp:
        for path in PAGES + NBS: Path(tmp, short(path).replace("/", ".") + ".md").write_text(prose(path), encoding="utf-8")
        return trouble(["codespell", tmp])


def is_there(target, path):
    "Whether a link or a notebook's name leads somewhere, from the page that has it; index is read as README.md, too."
    homes = [path.parent, ROOT] if path.stem == "index" else [path.parent]
    return any((home / target).exists() for home in homes)


def anchors(text):
    "The anchors of a page's headings, as GitHub makes them."
    titles = re.findall(r"^#+ +(.+?) *$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(path):
    "The links and references of a page that lead nowhere."
    text = prose(path)
    for link in re.findall(r"\]\(([^)\s]+)", text):
        file, _, anchor = link.partition("#")
        if re.match(r"\w+:", link): continue
        if not is_there(file, path) if file else anchor not in anchors(text): yield link
    names = {str(p.relative_to(ROOT).with_suffix("")) for p in NBS}
    for name in set(REFERENCE.findall(text)):
        near = (name, f"nbs/{name}", f"{Path(short(path)).parent}/{name}")
        if not names & set(near): yield name


def check_links():
    return "; ".join(f"{short(path)}: {link}" for path in PAGES + NBS for link in broken(path))


def sentence_lengths(text):
    "The words of each sentence of more than three words, in order of length, without code, formulas, tables and titles."
    text = re.sub(r"```.*?```|`[^`\n]*`|\$[^$\n]*\$|^[ \t]*[|#][^\n]*$", " ", text, flags=re.S | re.M)
    lengths = [len(sentence.split()) for sentence in re.split(r"(?<=[.!?:;])\s+", text)]
    return sorted(n for n in lengths if n > 3) or [0]


def check_sentences():
    lengths = {path: sentence_lengths(prose(path)) for path in NBS}
    p90 = {short(path): words[int(.9 * (len(words) - 1))] for path, words in lengths.items()}
    return "; ".join(f"{name}: {n} words" for name, n in p90.items() if n > LONGEST)


def check_complete():
    "No committed output says 'not run yet'."
    outputs = {path: str([c.outputs for c in nbformat.read(path, 4).cells if c.cell_type == "code"]) for path in NBS}
    return ", ".join(short(path) for path, text in outputs.items() if "not run yet" in text.lower())


CHECKS = {"spelling": check_spelling, "links and references": check_links, "short sentences": check_sentences,
          "complete outputs": check_complete}


if __name__ == "__main__": # one check by its name, or a piece of it
    for name, check in CHECKS.items():
        if not sys.argv[1:] or sys.argv[1] in name: print(f"{name}: {check() or 'ok'}")
