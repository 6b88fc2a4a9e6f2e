"""Compares a finished Titan run with what PyTorch recorded for the same model, recipe and data."""
import numpy as np

LOSS_TOLERANCE = 1e-4  # relative, each step
NORM_TOLERANCE = 1e-3  # relative, L2 norm of a trained tensor


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


def compare_state(tensors, reference, norms, folded=()):
    """Names, shapes and norms of a checkpoint's model tensors; of a tied set one name is enough, and only one. A name of `folded` was
    destroyed by the exporter, which left what it computed from the parameter: a tensor of another name and as many elements."""
    wrong = []
    tied = {name: names for names in reference["aliases"] for name in names}
    # Exports do not say which buffers a state_dict leaves out.
    extra = sorted(set(tensors) - set(reference["state"]) - set(reference["buffers"]))
    for name, shape in reference["state"].items():
        stored = [alias for alias in tied.get(name, [name]) if alias in tensors]
        replaced = [other for other in extra if name in folded and tensors[other].size == int(np.prod(shape))]
        if not stored and replaced:
            stored, shape = replaced[:1], list(tensors[replaced[0]].shape)
            extra.remove(replaced[0])
        if not stored and name in reference["buffers"]:
            continue  # a constant of the job, where the export does not say that it is a buffer
        if not stored:
            wrong.append(f"{name} {shape} is missing from the checkpoint")
        elif len(stored) > 1:
            wrong.append(f"tied {' = '.join(stored)} is stored {len(stored)} times")
        elif list(tensors[stored[0]].shape) != shape:
            wrong.append(f"{stored[0]} has shape {list(tensors[stored[0]].shape)}, state_dict has {shape}")
        else:
            norm = float(np.linalg.norm(tensors[stored[0]].astype(np.float64)))
            if not abs(norm - norms[name]) <= NORM_TOLERANCE * max(norms[name], 1e-3):
                wrong.append(f"{stored[0]} has norm {norm:.7g} after training, PyTorch has {norms[name]:.7g}")
    return wrong + [f"{name} is in the checkpoint, not in the state_dict" for name in extra]
