// titan-plan-form-buffers.
#include "compiler/Memory/BufferFormer.h"
#include "compiler/Memory/Passes.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_FORMBUFFERS
#include "compiler/Memory/Passes.h.inc"

namespace {

struct FormBuffers : impl::FormBuffersBase<FormBuffers> {
  void runOnOperation() override {
    if (failed(memory::BufferFormer(getOperation()).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace titan
