"""Compares a finished Titan run with what PyTorch recorded for the same model, recipe and data."""
import zlib

import numpy as np

LOSS_TOLERANCE = 1e-4  # relative, each step
NORM_TOLERANCE = 1e-3  # relative, L2 norm of a trained tensor
# Of the norm: a tensor that is off by NORM_TOLERANCE projects that far off with a probability of 1 in 16000.
PROJECTION_TOLERANCE = 4 * NORM_TOLERANCE
UPDATE_TOLERANCE = 2e-3  # of the L2 norm of what training added to a tensor


def projection(name, tensor):
    """A number that changes with the place of each element, which a norm does not (a square weight may be transposed): the sum of the
    elements, each times a normal number that `name` draws."""
    weights = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(tensor.size)
    return float(weights @ np.asarray(tensor, np.float64).reshape(-1))


def values_of(tensors):
    """What a reference holds of the values of trained tensors, {name: numpy array}."""
    return {"norms": {name: float(np.linalg.norm(np.asarray(tensor, np.float64))) for name, tensor in tensors.items()},
            "projections": {name: projection(name, tensor) for name, tensor in tensors.items()}}


def compare_losses(rows, expected):
    """`rows`: the run's metrics; `expected`: PyTorch's losses. Returns what is wrong, as lines."""
    found = [row["loss"] for row in rows]
    if len(found) != len(expected):
        return [f"{len(found)} steps in metrics.jsonl, expected {len(expected)}"]
    errors = np.abs(np.subtract(found, expected)) / np.maximum(np.abs(expected), 1e-12)
    if np.all(errors <= LOSS_TOLERANCE):
        return []
    step = int(np.argmax(~(errors <= LOSS_TOLERANCE)))
    return [f"loss of step {step + 1} is {found[step]!r}, PyTorch has {expected[step]!r} "
            f"(relative error {errors[step]:.1e}, at most {LOSS_TOLERANCE:.0e}); worst of the run {errors.max():.1e}"]


def compare_values(stored, tensor, name, trained):
    """What is wrong with the tensor `stored`, which PyTorch calls `name`, as lines."""
    expected, scale = trained["norms"][name], max(trained["norms"][name], 1e-3)
    norm = float(np.linalg.norm(tensor.astype(np.float64)))
    if not abs(norm - expected) <= NORM_TOLERANCE * scale:
        return [f"{stored} has norm {norm:.7g} after training, PyTorch has {expected:.7g}"]
    found, expected = projection(name, tensor), trained["projections"][name]
    if not abs(found - expected) <= PROJECTION_TOLERANCE * scale:
        return [f"{stored} has PyTorch's norm, and its elements at other places: projection {found:.7g}, PyTorch's {expected:.7g}"]
    # Of two runs from the same values, the difference is that of what training added, however small that is beside the values.
    update = trained.get("updates", {}).get(name)
    if update is not None and not (error := abs(found - expected)) <= UPDATE_TOLERANCE * max(update, 1e-6):
        return [f"{stored} has an update that is {error:.2g} from PyTorch's, of norm {update:.7g}, in one direction"]
    return []


def compare_state(tensors, reference, trained, folded=(), instead=None):
    """Names, shapes and values of a checkpoint's model tensors, the values by their norm and projection in `trained` (a recipe's results in
    the reference); of a tied set one name is enough, and only one. A name of `folded` was destroyed by the exporter, which left what it
    computed from the parameter: a tensor of another name and as many elements. `instead` says what an export has instead of a parameter:
    another `name`, its first `rows`, the `transposed` tensor, in another `shape`."""
    wrong, instead = [], instead or {}
    tied = {name: names for names in reference["aliases"] for name in names}
    renamed = {at["name"] for at in instead.values() if "name" in at}
    # Exports do not say which buffers a state_dict leaves out.
    extra = sorted(set(tensors) - set(reference["state"]) - set(reference["buffers"]) - renamed)
    for name, shape in reference["state"].items():
        at = instead.get(name, {})
        names = [at["name"]] if "name" in at else tied.get(name, [name])
        stored = [alias for alias in names if alias in tensors]
        replaced = [other for other in extra if name in folded and tensors[other].size == int(np.prod(shape))]
        if "rows" in at:
            name, shape = f"{name}[:{at['rows']}]", [at["rows"], *shape[1:]]
        if not stored and replaced:
            stored, shape = replaced[:1], list(tensors[replaced[0]].shape)
            extra.remove(replaced[0])
        if not stored and name in reference["buffers"] and not name.endswith("num_batches_tracked"):
            continue  # a constant of the job, where the export does not say that it is a buffer
        if not stored:
            wrong.append(f"{name} {shape} is missing from the checkpoint")
            continue
        if len(stored) > 1:
            wrong.append(f"tied {' = '.join(stored)} is stored {len(stored)} times")
            continue
        tensor = tensors[stored[0]].T if at.get("transposed") else tensors[stored[0]]
        if list(tensor.shape) == at.get("shape"):
            tensor = tensor.reshape(shape)
        if list(tensor.shape) != shape:
            wrong.append(f"{stored[0]} has shape {list(tensor.shape)}, state_dict has {shape}")
        else:
            wrong += compare_values(stored[0], tensor, name, trained)
    return wrong + [f"{name} is in the checkpoint, not in the state_dict" for name in extra]
