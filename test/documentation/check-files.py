"""check-files.py REPOSITORY: the files, folders and links that the Markdown pages name exist.

Looked at are links to other pages, and code spans that are a path: from the repository root (`test/driver/options.test`), or
from the page's own folder (`rules/Loss.cpp`). `Foo` in the first column of a table whose head is `file` is Foo.cpp, Foo.h or Foo.td.
"""
import re
import sys
from pathlib import Path

SUFFIXES = ["", ".cpp", ".h", ".td", ".md", ".py", ".mlir", ".test"]
ROOTS = {"compiler", "dialects", "frontend", "runtime", "tools", "test", "docs", "scripts", "examples", "bench", "cmake"}


def exists(path):
    if "*" in path.name:
        return any(path.parent.glob(path.name))
    return any(path.with_name(path.name + suffix).exists() for suffix in SUFFIXES)


def named_paths(page, text):
    """(what the page says, where it would be)"""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)#:]+)\)", prose):
        yield link, page.parent / link
    for span in re.findall(r"`([\w./*-]+)`", prose):
        if span.split("/")[0] in ROOTS and "/" in span:
            yield span, None
    in_files = False
    for line in prose.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if cells and cells[0] in ("file", "files"):
            in_files = True
        elif not cells:
            in_files = False
        elif in_files:
            for span in re.findall(r"`([\w./*-]+)`", cells[0]):
                yield span, page.parent / span.rstrip("/")


def main(root):
    root = Path(root).resolve()
    wrong, checked = [], 0
    pages = [page for page in sorted(root.rglob("*.md")) if page.relative_to(root).parts[0] not in ("build", ".git")]
    for page in pages:
        for name, place in named_paths(page, page.read_text()):
            checked += 1
            # In prose a path is from the root, or from the page's own folder.
            places = [place] if place else [root / name.rstrip("/"), page.parent / name.rstrip("/")]
            if not any(exists(candidate) for candidate in places):
                wrong.append(f"{page.relative_to(root)}: {name} does not exist")
    print("\n".join(wrong) or f"{checked} names in {len(pages)} pages exist")
    return 1 if wrong or not checked else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
