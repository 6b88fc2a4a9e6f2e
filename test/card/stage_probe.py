"""What the machine is: the card, its driver and libraries (titan-card-probe), and what PyTorch and cuDNN say of them."""
import ctypes
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import stage

# From cudnn_graph.h: a descriptor of device properties, which cuDNN can build plans from where there is no card.
CUDNN_DEVICEPROP_DESCRIPTOR, CUDNN_DEVICE_ID, CUDNN_JSON = 38, 2700, 2702
CUDNN_TYPE_INT32, CUDNN_TYPE_CHAR = 23, 24


def card():
    done = subprocess.run([stage.PACK / "bin" / "titan-card-probe", *stage.DESCRIPTION["probe_options"]], capture_output=True, text=True, timeout=50)
    if not done.stdout:
        raise stage.Failed(f"exit {done.returncode}: {done.stderr.strip()}")
    facts = json.loads(done.stdout)
    if done.returncode != 0:
        raise stage.Failed(facts.get("error", done.stderr.strip()), facts)
    card, copies, launches = facts["card"], facts["copies"], facts["launches"]
    return facts | {"text": f"{card['name']}, {card['arch']}, driver for CUDA {facts['driver']}, {card['bytes'] / 1e9:.1f} GB, "
                            f"copy {copies['device_bytes_per_second'] * 1e-9:.0f} GB/s, a launch {launches['seconds_per_launch'] * 1e6:.2f} us, "
                            f"a node {launches['seconds_per_graph_node'] * 1e6:.2f} us"}


def machine():
    tools = {name: shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin") for name in ("nvcc", "ptxas", "ncu", "compute-sanitizer", "cuobjdump", "nvdisasm")}
    limits = {"cpus": os.cpu_count(), "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
              "locked_bytes": resource.getrlimit(resource.RLIMIT_MEMLOCK)[0], "scratch_bytes": shutil.disk_usage(stage.PACK).free}
    return {"libc": " ".join(platform.libc_ver()), "kernel": platform.release(), "tools": tools, "limits": limits}


def nvidia_smi():
    fields = "name,driver_version,memory.total,memory.used,clocks.sm,clocks.mem,clocks.max.sm,power.limit,mig.mode.current,ecc.mode.current"
    code, output = stage.said(["nvidia-smi", f"--query-gpu={fields}", "--format=csv"])
    if code != 0:
        raise stage.Skipped(f"exit {code}: {output.strip()}")
    return {"text": output.strip()}


def cudnn_properties():
    """cuDNN's JSON of this card's properties: with it, plans are built and checked where there is no card."""
    try:
        library = ctypes.CDLL(find_library("libcudnn.so.9"))
    except OSError as error:
        raise stage.Skipped(f"no cuDNN: {error}") from None
    library.cudnnGetVersion.restype = ctypes.c_size_t
    library.cudnnGetErrorString.restype = ctypes.c_char_p
    facts = {"version": library.cudnnGetVersion()}
    descriptor = ctypes.c_void_p()

    def call(name, *arguments):
        status = getattr(library, name)(*arguments)
        if status != 0:
            raise stage.Skipped(f"cuDNN {facts['version']}: {name}: {library.cudnnGetErrorString(status).decode()}")

    call("cudnnBackendCreateDescriptor", CUDNN_DEVICEPROP_DESCRIPTOR, ctypes.byref(descriptor))
    number = ctypes.c_int32(0)
    call("cudnnBackendSetAttribute", descriptor, CUDNN_DEVICE_ID, CUDNN_TYPE_INT32, ctypes.c_int64(1), ctypes.byref(number))
    call("cudnnBackendFinalize", descriptor)
    size = ctypes.c_int64(0)
    call("cudnnBackendGetAttribute", descriptor, CUDNN_JSON, CUDNN_TYPE_CHAR, ctypes.c_int64(0), ctypes.byref(size), None)
    text = ctypes.create_string_buffer(size.value + 1)
    call("cudnnBackendGetAttribute", descriptor, CUDNN_JSON, CUDNN_TYPE_CHAR, size, ctypes.byref(size), text)
    call("cudnnBackendDestroyDescriptor", descriptor)
    return facts | {"device_properties": json.loads(text.value)}


def find_library(name):
    for folder in os.environ.get("TITAN_CUDA_LIBRARIES", "").split(":"):
        if folder and (Path(folder) / name).exists():
            return str(Path(folder) / name)
    return name


def torch_products():
    code, output = stage.said([sys.executable, stage.PACK / "bench" / "products.py"], limit=55)
    if code == 77:
        raise stage.Skipped(stage.last_line(output))
    if code != 0:
        raise stage.Failed(f"exit {code}: {stage.last_line(output)}")
    facts = json.loads(stage.last_line(output))
    return facts | {"text": f"8192 x 8192 x 8192 of bf16: {facts['square_8192']['tflops']:.0f} TFLOP/s, PyTorch {facts['torch']}"}


def main():
    report, _ = stage.begin()
    report.check("machine", machine)
    report.check("nvidia-smi", nvidia_smi)
    report.check("card", card)
    report.check("cuDNN's device properties", cudnn_properties)
    report.check("products by PyTorch", torch_products)


if __name__ == "__main__":
    main()
