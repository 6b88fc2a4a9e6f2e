# lit over the whole of test/. A test names the tools plainly (titan-opt, FileCheck, not, split-file): PATH
# holds the build tree's tools and LLVM's. Substitutions beyond lit's own:
#   %python    a Python 3 with numpy and Pillow
#   %exits     `%exits 2 command`: succeeds if the command's exit code is exactly 2
#   %tools     the folder of the tools, for a test that looks at the file itself
#   %examples  the repository's examples/
#   %references  small models with recipes, data and PyTorch's losses (training/references)
#   %modules   small modules as exporters write them (training/modules)
#   %inputs    the folder Inputs/ beside the test
import os

import lit.formats

config.name = "titan"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "references"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.titan_build_root, "test", "lit")

path = [config.titan_tools, config.llvm_tools, config.environment.get("PATH", "")]
config.environment["PATH"] = os.pathsep.join(path)
if "TITAN_TEST_SEED" in os.environ:
    config.environment["TITAN_TEST_SEED"] = os.environ["TITAN_TEST_SEED"]

config.substitutions.append(("%python", config.python))
config.substitutions.append(("%exits", os.path.join(config.test_source_root, "exits")))
# A driver without a card and a product library, as scripts/fake-cuda brings them; and a folder that hides the library.
config.substitutions.append(("%fake-cuda", "env LD_LIBRARY_PATH=" + os.path.join(config.titan_build_root, "lib", "titan-fake-cuda")))
config.substitutions.append(("%no-cublaslt", "env TITAN_CUDA_LIBRARIES=" + os.path.join(config.titan_build_root, "lib", "titan-no-cublaslt")))
config.substitutions.append(("%tools", config.titan_tools))
config.substitutions.append(("%examples", os.path.join(config.titan_source_root, "examples")))
config.substitutions.append(("%references", os.path.join(os.path.dirname(__file__), "training", "references")))
config.substitutions.append(("%modules", os.path.join(os.path.dirname(__file__), "training", "modules")))
config.substitutions.append(("%inputs", "%S/Inputs"))

for tool in ("titan-opt", "titan-compile", "titan-run", "titan-eager", "titan-ckpt", "titan-coverage", "titan-foreign-compile",
             "onnx-conformance"):
    if os.access(os.path.join(config.titan_tools, tool), os.X_OK):
        config.available_features.add(tool)
