"""Training speed: the packed rows of bench/gpu, Titan beside PyTorch."""
import json
import sys

import stage

MARGIN = 5  # seconds for train_gpt.py to say what it has


def row(description, work, seconds):
    """Of what train_gpt.py has when its time is over, all is kept."""
    folder = work / description["name"]
    folder.mkdir()
    (folder / "row.json").write_text(json.dumps(description))
    found = folder / "found.json"
    command = [sys.executable, stage.PACK / "bench" / "train_gpt.py", folder / "row.json", stage.PACK / "jobs" / description["job"],
               "--work", folder / "runs", "--json", found, "--seconds", str(seconds - MARGIN)]

    def facts(text=""):
        return (json.loads(found.read_text()) if found.exists() else {}) | {"text": text}

    try:
        code, output = stage.said(command, limit=seconds)
    except stage.Failed as late:
        raise stage.Failed(str(late), facts()) from None
    if code != 0:
        raise stage.Failed(f"exit {code}: {stage.last_line(output)}", facts(output))
    return facts(output)


def main():
    report, work = stage.begin()
    rows = stage.DESCRIPTION["rows"]
    if not rows:
        report.check("rows", no_rows)
    for number, description in enumerate(rows):
        # What a row leaves is the next one's.
        report.check(f"{description['name']}", row, description, work, stage.left() / (len(rows) - number))


def no_rows():
    raise stage.Skipped("the pack has no row")


if __name__ == "__main__":
    main()
