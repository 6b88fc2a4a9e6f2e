"""PyTorch on a card, eager or compiled: prints one line of JSON, {version, losses, seconds, peak_bytes, first_step}.

    with_pytorch.py ROW.json WEIGHTS_FOLDER TOKENS eager|compile

bf16 by autocast on f32 masters, fused AdamW, `scaled_dot_product_attention`: the fastest that one writes without kernels of one's own. Each step
is timed from a synchronised start to a synchronised end. Exit 77, with the reason: there is no PyTorch or no card.
"""
import json
import struct
import sys
import time
from pathlib import Path

try:
    import numpy as np
    import torch
except ImportError as error:
    print(f"no PyTorch: {error}")
    sys.exit(77)

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "examples"), str(HERE.parent.parent / "examples")]
import gpt  # noqa: E402
import llama  # noqa: E402
import problem  # noqa: E402


def model_of(row):
    if row["model"] == "llama":
        return llama.Llama(llama.Sizes(row["layers"], row["width"], row["heads"], row["key_heads"], row["hidden"], row["positions"], row["vocabulary"]))
    return gpt.GPT(gpt.Sizes(row["layers"], row["width"], row["heads"], row["positions"], row["vocabulary"]))


def read_weights(folder):
    """{name: tensor} of the safetensors files of a checkpoint of one rank."""
    weights = {}
    for path in sorted(Path(folder).glob("*.safetensors")):
        content = path.read_bytes()
        (length,) = struct.unpack_from("<Q", content)
        for name, entry in json.loads(content[8:8 + length]).items():
            if name != "__metadata__":
                assert entry["dtype"] == "F32", f"{name} is {entry['dtype']}"
                first, last = entry["data_offsets"]
                flat = np.frombuffer(content, np.float32, (last - first) // 4, 8 + length + first)
                weights[name] = torch.from_numpy(flat.reshape(entry["shape"]).copy())
    return weights


def main(row, folder, tokens, mode):
    if not torch.cuda.is_available():
        print("PyTorch sees no card")
        return 77
    row = json.loads(Path(row).read_text())
    with torch.device("cuda"):  # where weights that are replaced below are drawn in no time
        model = model_of(row)
    missing, unexpected = model.load_state_dict(read_weights(folder), strict=False)
    assert set(missing) <= {"head.weight"} and not unexpected, (missing, unexpected)  # the head is the token embedding
    model = model.train()
    optimizer = torch.optim.AdamW(model.parameters(), problem.LEARNING_RATE, problem.BETAS, problem.EPSILON, problem.WEIGHT_DECAY, fused=True)

    def loss_of(ids, targets):
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(ids)
            return torch.nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))

    if mode == "compile":
        loss_of = torch.compile(loss_of)
    data = [tuple(torch.from_numpy(part).cuda() for part in pair) for pair in problem.batches(tokens, row)]
    losses, seconds = [], []
    for step in range(problem.CHECKED + problem.WARM_UP + problem.MEASURED):
        torch.cuda.synchronize()
        started = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(*data[step % len(data)])
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    print(json.dumps({"version": torch.__version__, "losses": [loss.item() for loss in losses[:problem.CHECKED]],
                      "seconds": seconds[problem.CHECKED + problem.WARM_UP:], "first_step": seconds[0],
                      "peak_bytes": torch.cuda.max_memory_reserved()}))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
