"""check-sync-memory.py TITAN_COMPILE MODEL: what sums over ranks cost in memory, and what mesh.sync = "auto" makes of a limit.

MODEL has layers of one width: 98,304 bytes of gradients. Two ranks sum them once a step into whole accumulators, or with each of four microbatches into
parts. Between the smallest plans of both, `auto` is the second where the strategy cuts the sums, says so with the bytes of both, and the job carries it.
"""
import re
import subprocess
import sys

GRADIENTS = 6 * 64 * 64 * 4
OPTIONS = ("loss.kind=mse", "mesh.axes={ shard = 2 }", "batch.micro=2", "batch.global=16")
wrong = []


def compile_(titan_compile, model, *settings, emit="plan", remarks=False):
    command = [titan_compile, model, f"--emit={emit}", *(["--remarks=shard"] if remarks else [])]
    for setting in (*OPTIONS, *settings):
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def expect(what, holds):
    if not holds:
        wrong.append(what)


def accumulators(module):
    """Bytes of the floats that the loops of @step add up."""
    size = 0
    for text in re.findall(r"accumulators\((.*?)\) ->", module):
        for shape in re.findall(r"tensor<((?:\d+x)*)f32>", text):
            count = 4
            for extent in shape.split("x")[:-1]:
                count *= int(extent)
            size += count
    return size


def smallest(compiled, strategy, sync):
    code, _, err = compiled(f"mesh.strategy={strategy}", f"mesh.sync={sync}", "memory.limit=1000")
    expect(f"{strategy}, {sync}: exit {code} with a limit of 1000 bytes", code == 1)
    return int(re.search(r"needs .*?\((\d+) bytes\)", err).group(1))


def sync_of(module):
    return re.search(r'sync = ("\w+"|\{.*?\})', module).group(1)


def check(titan_compile, model):
    def compiled(*settings, **options):
        return compile_(titan_compile, model, *settings, **options)

    for strategy, sync, share in (("fsdp", "deferred", 1), ("fsdp", "immediate", 2), ("zero1", "deferred", 1), ("zero1", "immediate", 2), ("zero2", "auto", 2),
                                  ("ddp", "deferred", 1), ("ddp", "immediate", 1)):
        code, module, err = compiled(f"mesh.strategy={strategy}", f"mesh.sync={sync}", emit="schedule")
        expect(f"{strategy}, {sync}: {err}", code == 0)
        expect(f"{strategy}, {sync}: accumulators of {accumulators(module)} bytes", accumulators(module) == GRADIENTS // share + 4)  # and the loss

    # A tree has accumulators for each level of the four microbatches; an iteration that stands behind its loop has a loop of its own.
    for strategy, sync, share, loops in (("ddp", "deferred", 1, 3), ("fsdp", "deferred", 1, 3), ("fsdp", "immediate", 2, 2)):
        code, module, err = compiled(f"mesh.strategy={strategy}", f"mesh.sync={sync}", "mesh.reduce=tree", emit="schedule")
        expect(f"{strategy}, {sync}, tree: {err}", code == 0)
        expect(f"{strategy}, {sync}, tree: accumulators of {accumulators(module)} bytes", accumulators(module) == loops * (GRADIENTS // share + 4))

    for strategy in ("fsdp", "zero1"):
        deferred, immediate = smallest(compiled, strategy, "deferred"), smallest(compiled, strategy, "immediate")
        expect(f"{strategy}: plans of {deferred} and {immediate} bytes", immediate < deferred)
        limit = (deferred + immediate) // 2
        code, module, err = compiled(f"mesh.strategy={strategy}", f"memory.limit={limit}", remarks=True)
        expect(f"{strategy}, {limit}: {err}", code == 0)
        said = re.search(r'mesh.sync = .{0,2}auto.{0,2} is immediate on shard: (\d+) bytes; summed once a step, the smallest plan has (\d+), memory.limit is (\d+)', err)
        expect(f"{strategy}: no remark in {err}", said)
        if said:
            bytes_, once, given = map(int, said.groups())
            expect(f"{strategy}: remark says {said.group(0)}", bytes_ <= limit and once == deferred and given == limit)
        expect(f"{strategy}: sync = {sync_of(module)}", sync_of(module) == '{replicate = "deferred", shard = "immediate"}')
        # Where it fits once a step, or neither does, or the recipe has chosen, nothing is tried.
        code, module, err = compiled(f"mesh.strategy={strategy}", f"memory.limit={deferred}")
        expect(f"{strategy}, {deferred}: exit {code}, {err}", code == 0 and sync_of(module) == '"deferred"')
        code, _, err = compiled(f"mesh.strategy={strategy}", f"memory.limit={immediate - 1000}")
        expect(f"{strategy}, less than either: exit {code}, {err}", code == 1 and f"{immediate} bytes" in err)
        for choice in ("mesh.sync=deferred", "mesh.sync_every=4"):
            code, _, err = compiled(f"mesh.strategy={strategy}", f"memory.limit={limit}", choice)
            expect(f"{strategy}, {choice}: exit {code}, {err}", code == 1)
    # Parts of the sums are what is saved: ddp has none.
    code, _, err = compiled(f"memory.limit={smallest(compiled, 'ddp', 'deferred') - 1000}")
    expect(f"ddp: exit {code}, {err}", code == 1)


if __name__ == "__main__":
    check(*sys.argv[1:])
    print("\n".join(wrong) or "limits decide when ranks sum")
    sys.exit(1 if wrong else 0)
