"""Training with PyTorch on several ranks, over gloo: `ddp` or `fsdp2` on the command line. The process that the driver starts is rank 0, and starts the
same program again for the others, each with a part of the threads and on CPUs of its own."""
import os
import subprocess
import sys
import tempfile

import protocol


FOLDER = tempfile.TemporaryDirectory(prefix="titan-bench-store-")  # where the ranks meet


def start_others():
    """The processes of the other ranks; none where this is one of them."""
    if "RANK" in os.environ:
        return []
    os.environ |= {"RANK": "0", "WORLD_SIZE": str(protocol.RANKS), "GLOO_SOCKET_IFNAME": "lo", "TITAN_BENCH_STORE": f"{FOLDER.name}/store"}
    # What rank 0 is asked, they are asked, too. What they answer is rank 0's answer.
    return [subprocess.Popen([sys.executable, *sys.argv], env=os.environ | {"RANK": str(rank)}, stdin=subprocess.PIPE,
                             stdout=subprocess.DEVNULL, text=True) for rank in range(1, protocol.RANKS)]


OTHERS = start_others()
import with_pytorch  # with this rank's threads
import numpy as np
import torch
from torch import distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

RANK = int(os.environ["RANK"])
distributed.init_process_group("gloo", init_method=f"file://{os.environ['TITAN_BENCH_STORE']}", rank=RANK, world_size=protocol.RANKS)


def divided(model, layers):
    """`model` as the strategy has it; FSDP2 gathers each of `layers` by itself."""
    if "ddp" in sys.argv:
        return DistributedDataParallel(model, gradient_as_bucket_view=True)
    mesh = init_device_mesh("cpu", (protocol.RANKS,))
    for layer in layers:
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def serve(problem, model, loss_of, batches):
    """As with_pytorch.serve, for a `model` that is divided. Of each batch this rank takes its part; the loss is the mean over all."""
    mine = [tuple(np.array_split(part, protocol.RANKS)[RANK] for part in batch) for batch in batches]
    train_mine = with_pytorch.trainer(problem, model, loss_of, mine)

    def train(steps):
        loss = train_mine(steps)
        distributed.all_reduce(loss)
        return loss.item() / protocol.RANKS

    protocol.serve(problem, torch.__version__, train, OTHERS)
    for other in OTHERS:
        other.stdin.close()
        other.wait()
