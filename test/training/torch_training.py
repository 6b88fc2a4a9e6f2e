"""What a recipe means, said in PyTorch: the training loop that the references are recorded from.

The formulas (step counts from 0):
    warm-up   lr * (step + 1) / warmup_steps, for step < warmup_steps
    t         (step - warmup_steps) / max(1, steps - warmup_steps), clamped to [0, 1]
    cosine    lr * (min + (1 - min) * (1 + cos(pi * t)) / 2)
    linear    lr * (1 - (1 - min) * t)
    wsd       lr up to t = 0.8, then lr * (1 - (1 - min) * (t - 0.8) / 0.2)
    clip      gradient * min(1, clip_norm / (norm + 1e-6)), norm over all trainable parameters
    loss      sum over the global batch / number of valid targets of the global batch; with kind "output", the
              mean over microbatches
With shuffle = false, sample i of step s is (s * global + i) mod N.
"""
import fnmatch
import math

import torch
import torch.nn.functional as F


def learning_rate(recipe, step):
    schedule, lr = recipe.get("schedule", {}), recipe["optimizer"]["lr"]
    kind, warmup = schedule.get("kind", "constant"), schedule.get("warmup_steps", 0)
    steps = schedule.get("steps", recipe["train"]["steps"])
    low = schedule.get("min_lr_ratio", 0.0)
    if step < warmup:
        return lr * (step + 1) / warmup
    t = min(1.0, max(0.0, (step - warmup) / max(1, steps - warmup)))
    if kind == "cosine":
        return lr * (low + (1 - low) * 0.5 * (1 + math.cos(math.pi * t)))
    if kind == "linear":
        return lr * (1 - (1 - low) * t)
    if kind == "wsd":
        return lr * (1 - (1 - low) * max(0.0, t - 0.8) / 0.2)
    return lr


def loss_sum_and_count(recipe, output, target):
    loss = recipe.get("loss", {})
    kind = loss.get("kind", "cross_entropy")
    if kind == "output":
        return output, 1
    if kind == "cross_entropy":
        weights = loss.get("class_weights")
        ignore = loss.get("ignore_index", -100)
        output = output.movedim(loss.get("class_dim", -1), -1)
        logits, labels = output.reshape(-1, output.shape[-1]), target.reshape(-1)
        weights = None if weights is None else torch.tensor(weights, dtype=logits.dtype)
        total = F.cross_entropy(logits, labels, weights, ignore_index=ignore, reduction="sum",
                                label_smoothing=loss.get("label_smoothing", 0.0))
        counted = labels[labels != ignore]
        return total, len(counted) if weights is None else weights[counted].sum().item()
    function = {"mse": F.mse_loss, "l1": F.l1_loss, "bce_with_logits": F.binary_cross_entropy_with_logits}[kind]
    return function(output, target, reduction="sum"), output.numel()


def parameter_groups(model, recipe):
    optimizer = recipe["optimizer"]
    decay = optimizer.get("weight_decay", 0.01 if optimizer["kind"] == "adamw" else 0.0)
    groups = []
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        own, scale = decay, 1.0
        if any(fnmatch.fnmatchcase(name, glob) for glob in optimizer.get("no_decay", ["*.bias"])):
            own = 0.0
        for group in optimizer.get("group", []):
            if fnmatch.fnmatchcase(name, group["match"]):
                scale, own = group.get("lr_scale", 1.0), group.get("weight_decay", own)
                break
        groups.append({"params": [parameter], "weight_decay": own, "scale": scale})
    return groups


def make_optimizer(model, recipe):
    optimizer, groups = recipe["optimizer"], parameter_groups(model, recipe)
    if optimizer["kind"] == "sgd":
        return torch.optim.SGD(groups, lr=1.0, momentum=optimizer.get("momentum", 0.0),
                               nesterov=optimizer.get("nesterov", False))
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[optimizer["kind"]]
    return kind(groups, lr=1.0, betas=tuple(optimizer.get("betas", (0.9, 0.999))), eps=optimizer.get("eps", 1e-8))


def train(model, recipe, data, inputs, dtype=torch.float32):
    """Trains `model` in place for train.steps; returns the loss of each step, taken before its update."""
    # Module.to would take the real part of complex tables of angles.
    model._apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)
    for name, parameter in model.named_parameters():
        frozen = recipe.get("model", {}).get("frozen", [])
        parameter.requires_grad_(not any(fnmatch.fnmatchcase(name, glob) for glob in frozen))
    tensors = {name: torch.from_numpy(array) for name, array in data.items()}
    tensors = {name: t.to(dtype) if t.is_floating_point() else t for name, t in tensors.items()}
    samples, micro, batch = len(next(iter(data.values()))), recipe["batch"]["micro"], recipe["batch"]["global"]
    optimizer = make_optimizer(model, recipe)
    trainable = [p for p in model.parameters() if p.requires_grad]
    losses = []
    for step in range(recipe["train"]["steps"]):
        total, count = 0.0, 0
        for first in range(0, batch, micro):
            rows = [(step * batch + first + i) % samples for i in range(micro)]
            output = model(*(tensors[name][rows] for name in inputs))
            target = tensors["targets"][rows] if "targets" in tensors else None
            part, valid = loss_sum_and_count(recipe, output, target)
            part.backward()
            total, count = total + part.item(), count + valid
        losses.append(total / count)
        for parameter in trainable:
            if parameter.grad is not None:  # a model may have parameters that it does not use
                parameter.grad /= count
        clip = recipe["optimizer"].get("clip_norm", 0.0)
        if clip:
            torch.nn.utils.clip_grad_norm_(trainable, clip)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(recipe, step) * group["scale"]
        optimizer.step()
        optimizer.zero_grad()
    return losses
