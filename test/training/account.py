"""Whether an account of an import (`titan-compile --check --json`) and the training run behind it are true: names, shapes, kinds, ties, the first
update of every tensor, all losses. What differs from PyTorch must stand in the account, in a line that is about that tensor and that a note
explains. Needs numpy only.

The first step is the strict one. Before it both have the same values, so the first loss and each tensor's first update are PyTorch's whatever else
was folded, cut or frozen: only what a line says of the tensor itself explains another update. Later steps are compared where all that PyTorch trains
is trained.
"""
import dataclasses
import itertools

import numpy as np

LOSS_TOLERANCE = 1e-4   # relative
UPDATE_TOLERANCE = 0.02  # of the norm of what training added to the tensor
UNLISTED = "a parameter that the exporter's optimizer removed cannot be listed"  # a note
TRAINED = ("exact", "guessed", "part", "made up")


@dataclasses.dataclass
class Source:
    """What PyTorch has. `states`: the state_dict before the first step, after it and after the last one; `ties`: the names of one tensor; `buffers`:
    {name: whether the state_dict has it}; `unused`: parameters without gradient; `losses`: of each step."""
    states: list
    ties: list
    buffers: dict
    unused: set
    losses: list

    def names_of(self, name):
        return next((names for names in self.ties if name in names), [name])

    def parameters(self):
        """The names of each parameter, all ties in one."""
        groups = {tuple(self.names_of(name)) for name in self.states[0] if name not in self.buffers}
        return sorted(groups)


@dataclasses.dataclass
class Export:
    """What the file has: the names of its initializers of floats, and those of the source that its signature lists (none: it has no signature)."""
    initializers: list
    listed: list


@dataclasses.dataclass
class Run:
    """What Titan made of it: losses, and the tensors after the first and the last step."""
    losses: list
    first: dict
    last: dict


class Findings:
    """`silent`: differences that nothing explains; `explained`: those that the account explains. `loose`: PyTorch trains something that the job does
    not, or the other way round, so that later steps differ."""

    def __init__(self):
        self.silent, self.explained, self.loose, self.moved = [], [], False, []


def close(mine, other, update):
    """Whether two values of a tensor are one, after a training that moved it by `update`."""
    error = np.linalg.norm(np.asarray(mine, np.float64) - other)
    return error <= UPDATE_TOLERANCE * update + 2e-6 * np.linalg.norm(other) + 1e-7


def update_of(source, name, step):
    return np.linalg.norm(source.states[step][name].astype(np.float64) - source.states[0][name])


def movements(tensor):
    """The tensor as it stands, and with its dimensions in any other order."""
    orders = itertools.permutations(range(tensor.ndim)) if tensor.ndim <= 4 else [tuple(range(tensor.ndim))]
    return (tensor.transpose(order).reshape(-1) for order in orders)


def is_moved(mine, source, name, step=1):
    """Whether `mine`, after a step, is PyTorch's tensor `name`, reshaped or transposed."""
    other, update = source.states[step][name], update_of(source, name, step)
    return mine.size == other.size and any(close(moved, other.reshape(-1), update) for moved in movements(mine))


def judge(checked, export, run, source):
    """`checked`: the JSON. Returns Findings."""
    found, account = Findings(), checked["tensors"]
    closure(account, export, source, found)
    check_notes(checked, found)
    trained = {line["name"]: line for line in account if line["standing"] in TRAINED}
    for name in sorted(set(run.first) ^ set(trained)):
        found.silent.append(f"{name} is in the {'checkpoint' if name in run.first else 'account'} alone")
    by_source = {}
    for line in account:
        check_line(line, source, by_source, found)
    free = [line for line in account if line["standing"] in ("part", "made up", "guessed") and line["noted"] and line["name"] in run.first
            and not any(line in lines for lines in by_source.values())]
    missing = [names for names in source.parameters() if names not in by_source]
    missing = [names for names in missing if not find_moved(names, run, source, free, found)]
    for names, lines in by_source.items():
        check_present(names, lines, account, export, run, source, free, found)
    for names in missing:
        check_missing(names, checked, export, source, free, found)
    for line in free:
        found.explained.append(f"{line['name']} {line['shape']} is trained, {line['standing']}")
        found.loose = True
    if not found.loose:
        check_end(by_source, run, source, found)
    check_losses(run, source, found)
    return found


def closure(account, export, source, found):
    """Each tensor of the file and each name has one line; a part's line has the names of what it is of. The signature also lists what no
    state_dict has, and integers."""
    for field, one in (("name", lambda line: [line["name"]]), ("initializer", lambda line: line["initializers"])):
        seen = [name for line in account for name in one(line)]
        found.silent += [f"{field} {name} has several lines" for name in sorted({n for n in seen if seen.count(n) > 1})]
    lines = {name.split("#")[0] for line in account for name in line["initializers"]}
    found.silent += [f"tensor {name} has no line" for name in export.initializers if name not in lines]
    known = {line["name"] for line in account} | {name for line in account if line["standing"] == "part" for name in line["of"]}
    found.silent += [f"{name} of the signature has no line" for name in export.listed
                     if name not in known and name in source.states[0] and source.states[0][name].dtype.kind == "f"]


def check_notes(checked, found):
    """A line that is noted has its name, or that of its tensor, in a note; the counts are those of the lines."""
    text = "\n".join(checked["notes"])
    for line in checked["tensors"]:
        if line["noted"] and not any(f"'{name}'" in text for name in [line["name"], *line["initializers"]]):
            found.silent.append(f"{line['name']} is in no note")
    for standing, count in checked["counts"].items():
        if count != sum(line["standing"] == standing for line in checked["tensors"]):
            found.silent.append(f"{count} lines are counted as {standing}")


def check_line(line, source, by_source, found):
    """What a line claims by itself; fills `by_source` (names of a tensor of PyTorch -> lines that hold all of it)."""
    name, standing, noted, start = line["name"], line["standing"], line["noted"], source.states[0]
    say = (lambda text: found.explained.append(text)) if noted else (lambda text: found.silent.append(text))
    if standing in ("exact", "guessed") or standing == "made up" and noted and name in start:
        if name not in start:
            if source.buffers.get(name) is False and line["kind"] != "parameter":
                return
            say(f"{name} {line['shape']} is no name of PyTorch")
            found.loose = True  # a buffer of a file that does not say so, for one
        elif list(line["shape"]) != list(start[name].shape):
            found.silent.append(f"{name} has shape {line['shape']}, in PyTorch {list(start[name].shape)}")
        elif (line["kind"] == "parameter") == (name in source.buffers):
            say(f"{name} is a {line['kind']}, and not in PyTorch")
            found.loose = True
        elif standing == "exact" or noted:
            by_source.setdefault(tuple(source.names_of(name)), []).append(line)
        else:
            found.silent.append(f"{name} is guessed, without a note")
    elif standing == "alias":
        if any(name in start and of in start and of not in source.names_of(name) for of in line["of"]):
            say(f"{name} is {' = '.join(line['of'])}, and not in PyTorch")
    elif standing in ("part", "made up"):
        if not noted:
            found.silent.append(f"{name} is {standing}, without a note")
        if name in start:
            found.silent.append(f"{name} {line['shape']} is {standing}, under a name of PyTorch's")
    elif standing == "constant":
        if name in start and name not in source.buffers and name not in source.unused:
            say(f"{name} is a constant, and trained in PyTorch")
            found.loose = True
        if not noted and not line["proof"] and line["shape"] != []:
            found.silent.append(f"{name} {line['shape']} is a constant without proof or note")


def check_update(line, tensors, names, source, step, found, when=""):
    """The tensor of `line` against PyTorch's after a step; False where it differs."""
    name = line["name"]
    mine, other = tensors.get(name), source.states[step][names[0]]
    if mine is None or mine.shape != other.shape:
        return True  # said already
    update = update_of(source, names[0], step)
    if close(mine, other, update):
        return True
    error = np.linalg.norm(mine - other)
    found.silent.append(f"{name} is {when}{error:.2g} from PyTorch's after an update of {update:.2g}")
    return False


def check_present(names, lines, account, export, run, source, free, found):
    """A parameter or buffer of PyTorch, under all its names, that `lines` say they are."""
    if len(lines) > 1:
        text = f"{' = '.join(line['name'] for line in lines)} is trained {len(lines)} times"
        (found.explained if any(line["noted"] for line in lines) else found.silent).append(text)
        found.loose = True
        return
    attempt = Findings()
    if not check_update(lines[0], run.first, names, source, 1, attempt):
        # A tie that is lost, or a part that is trained apart, has the rest of the gradient.
        rest = free if len(names) > 1 else []
        if not export.listed:
            rest = traces(account, free)
        explained = lines[0]["noted"] or parts_of(names, account) or rest
        (found.explained if explained else found.silent).extend(attempt.silent)
        found.loose = True


def check_end(by_source, run, source, found):
    """All tensors after the last step. One of a line that is noted may drift from PyTorch's slowly, as what the source detaches before a norm, and then
    explains what the others do."""
    noted, rest = Findings(), Findings()
    for names, lines in by_source.items():
        for line in lines:
            check_update(line, run.last, names, source, -1, noted if line["noted"] else rest, "in the end ")
    rest.silent += [f"{mine} is not {name} in the end" for mine, name in found.moved if not is_moved(run.last[mine], source, name, -1)]
    if noted.silent:
        found.explained += noted.silent
        found.loose = True
    else:
        found.silent += rest.silent


def find_moved(names, run, source, free, found):
    """Whether a tensor of another name is all of the parameter; takes its line from `free`."""
    line = next((line for line in free if is_moved(run.first[line["name"]], source, names[0])), None)
    if line is None:
        return False
    free.remove(line)
    found.moved.append((line["name"], names[0]))
    found.explained.append(f"{names[0]} {list(source.states[0][names[0]].shape)} is trained as {line['name']}")
    return True


def check_missing(names, checked, export, source, free, found):
    """A parameter of PyTorch that nothing is all of: a line says what became of it, or a note that nothing can."""
    account = checked["tensors"]
    text = f"{names[0]} {list(source.states[0][names[0]].shape)} is not there"
    said = [line for line in account if line["standing"] in ("absent", "alias", "constant") and line["name"] in names and line["noted"]]
    if set(names) <= source.unused:
        return
    found.loose = True
    if parts_of(names, account) or said:
        found.explained.append(f"{text}, as the account says")
    elif not export.listed and (traces(account, free) or stand_ins(names, account, source)):
        found.explained.append(f"{text}, and the file has no names")
    elif not export.listed and any(UNLISTED in note for note in checked["notes"]) and is_removed(names, account, export, source):
        found.explained.append(f"{text}, and the file cannot say so")
    else:
        found.silent.append(text)


def traces(account, free):
    """What a parameter may have become in a file without signature, which knows no names: tensors that are nothing of the source, constants."""
    return [line for line in account if line["standing"] == "constant" and line["noted"]] + free


def is_removed(names, account, export, source):
    """Whether the exporter may have removed the parameter: the file has not its name, and no constant of its size, which would have to have a note."""
    size = source.states[0][names[0]].size
    return not set(names) & set(export.initializers) and (
        size == 1 or not any(line["standing"] == "constant" and not line["noted"] and np.prod(line["shape"]) == size for line in account))


def stand_ins(names, account, source):
    """Lines of doubt in such a file that may stand for the parameter too: a tensor that starts with its values, or one that may have been computed of
    it, a guess in its module or a part without names there. That part may be all of another parameter: v in g * v / |v|, where no gradient comes."""
    start = source.states[0]
    inside = lambda module: any(name.startswith(module + "." if module else "") for name in names)
    return [line for line in account if line["noted"] and (
        line["standing"] in ("exact", "guessed") and line["name"] in start and np.array_equal(start[line["name"]], start[names[0]])
        or line["standing"] == "guessed" and inside(line["name"].rpartition(".")[0])
        or line["standing"] == "part" and not line["of"] and inside(".".join(line["name"].split(".")[:-2])))]


def parts_of(names, account):
    return [line for line in account if line["standing"] == "part" and set(line["of"]) & set(names) and line["noted"]]


def check_losses(run, source, found):
    if None in run.losses or len(run.losses) != len(source.losses):
        found.silent.append(f"losses {run.losses}, PyTorch's {source.losses}")
        return
    errors = np.abs(np.subtract(run.losses, source.losses)) / np.maximum(np.abs(source.losses), 1e-12)
    if not errors[0] <= LOSS_TOLERANCE:
        found.silent.append(f"the first loss is {run.losses[0]:.7g}, PyTorch's {source.losses[0]:.7g}")
    elif not found.loose and not np.all(errors <= LOSS_TOLERANCE):
        found.silent.append(f"losses {run.losses[-1]:.7g} and {source.losses[-1]:.7g} at the end, worst relative error {errors.max():.1e}")
