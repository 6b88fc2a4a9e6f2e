// Where cuDNN's headers were missing when Titan was built.
#include "runtime/device/cuda/AttentionLibrary.h"

namespace titan::cuda {
namespace {

Error without() {
  return Error::environment("Titan was built without cuDNN: build it where cudnn.h and "
                            "cudnn_frontend.h are (scripts/install-cuda fetches them)");
}

} // namespace

Result<std::unique_ptr<AttentionLibrary>> loadCudnn(const Card&) { return without(); }
Result<std::string> findCudnn() { return without(); }
Result<std::unique_ptr<AttentionLibrary>> loadCudnnWithoutCard(const Card&, std::string_view) {
  return without();
}

} // namespace titan::cuda
