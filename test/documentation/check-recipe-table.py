"""check-recipe-table.py RECIPE README: the keys of RECIPE, which has all of them, are those of README's recipe table."""
import re
import sys
import tomllib
from pathlib import Path

# Assigned in the table, but inside a key's value or in a [[section.key]] table.
NESTED = {"model": {"seq", "dist"}, "mesh": {"replicate", "shard", "tensor"}, "data": {"input"}, "ema": {"slow", "fast", "decay", "every", "warmup"}}
# [[section.key]] tables, which a recipe without any does not show.
TABLES = {"model": {"init_rule"}, "optimizer": {"group"}}


def table(readme):
    """{section: (words in code, words that are assigned in code)}"""
    rows = {}
    for section, text in re.findall(r"^\| `\[([a-z]+)\]` \|(.*)\|$", readme, re.MULTILINE):
        codes = re.findall(r"`([^`]+)`", text)
        rows[section] = ({word for code in codes for word in re.findall(r"[a-z_]+", code)},
                         {word for code in codes for word in re.findall(r"([a-z_]+) =", code)})
    return rows


def main(recipe, readme):
    sections, rows = tomllib.loads(Path(recipe).read_text()), table(Path(readme).read_text())
    wrong = [f"[{name}] is in one of the two only" for name in sorted(sections.keys() ^ rows.keys())]
    for name in sections.keys() & rows.keys():
        mentioned, assigned = rows[name]
        keys = sections[name].keys() | TABLES.get(name, set())
        wrong += [f"[{name}] {key} is not in README's table" for key in sorted(keys - mentioned)]
        wrong += [f"[{name}] {key} is no key" for key in sorted(assigned - keys - NESTED.get(name, set()))]
    print("\n".join(wrong) or f"{sum(map(len, sections.values()))} keys are in README's table, and no other")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
