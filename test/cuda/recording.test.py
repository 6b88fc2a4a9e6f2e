"""recording.test: steps are launched ahead, wait for losses alone and take no memory."""
from pathlib import Path

STEPS = 20
calls = [line for line in Path("calls").read_text().splitlines() if not line.startswith("cuCtxSetCurrent")]


def places(start):
    return [place for place, line in enumerate(calls) if line.startswith(start)]


start, launches = places("cuLaunchKernel(")[0], places("cuGraphLaunch(")
assert len(places("cuGraphInstantiate")) == 1 and len(launches) == STEPS - 1, launches
walked = places("cuLaunchKernel(")
assert max(walked) < launches[0] and len(walked) % 2 == 0, "the first step is walked, the second is recorded"

steps = calls[start:launches[-1]]
for taken in ("cuMemAlloc", "cuMemHostAlloc", "cuEventCreate", "cuStreamCreate", "cuModuleLoad"):
    assert not any(line.startswith(taken) for line in steps), taken
copies = [line for line in steps if line.startswith(("cuMemcpyHtoD", "cuMemcpyDtoH"))]
assert copies and all(" pinned," in line for line in copies), copies

# Whoever waits lets the fake's streams go on as far as that takes: one step less than were launched.
ran = len(walked) // 2  # kernels of a step
for step, (launch, following) in enumerate(zip(launches, launches[1:]), start=2):
    waits = [place for place in range(launch, following) if "Synchronize(" in calls[place] or "Query(" in calls[place]]
    assert len(waits) == 1 and calls[waits[0]].startswith("cuEventSynchronize("), [calls[place] for place in waits]
    kernels = sum(line.startswith("# titan_kernel") for line in calls[start:waits[0]])
    assert kernels == (step - 1) * ran, (step, kernels, ran)
