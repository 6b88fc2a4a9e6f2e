#include "compiler/Codegen/cuda/AttentionCall.h"

#include "runtime/program/AttentionNeeds.h"

namespace titan::codegen::cuda {
namespace {

/// Elements of bf16 in the 16 bytes that the library reads at once.
constexpr int64_t atOnce = 8;
constexpr int64_t mostWidth = 128;

AttentionView viewOf(kernel::ViewAttr view, unsigned before) {
  return {static_cast<uint32_t>(view.getOperand() + before), view.getOffset(), view.getBatch(),
          view.getRow(), view.getHead()};
}

bool isAligned(const AttentionView& view) {
  return (view.offset | view.batch | view.row | view.head) % atOnce == 0;
}

bool suitsLibrary(const Attention& a) {
  const auto isWidth = [](int64_t width) { return width % atOnce == 0 && width <= mostWidth; };
  bool aligned =
      isAligned(a.query) && isAligned(a.key) && isAligned(a.value) && isAligned(a.result);
  if (a.backward)
    aligned &=
        isAligned(a.dresult) && isAligned(a.dquery) && isAligned(a.dkey) && isAligned(a.dvalue);
  return aligned && a.element == DType::BF16 && isWidth(a.width) && isWidth(a.valueWidth);
}

} // namespace

std::optional<LibraryCall> libraryAttention(kernel::CallOp call) {
  auto routine = dyn_cast<kernel::AttentionAttr>(call.getRoutine());
  if (!routine || routine.getMask() || routine.getDropout() || !routine.getElement().isBF16())
    return std::nullopt;
  // A command's operands are ins, then outs.
  const auto ins = static_cast<unsigned>(call.getIns().size());
  kernel::AttentionGradientAttr gradient = routine.getGradient();
  const unsigned ofResult = gradient ? 0 : ins;
  Attention a;
  a.batch = routine.getBatch();
  a.heads = routine.getHeads();
  a.keyHeads = routine.getKeyHeads();
  a.queries = routine.getQueries();
  a.keys = routine.getKeys();
  a.width = routine.getWidth();
  a.valueWidth = routine.getValueWidth();
  a.causal = routine.getCausal();
  a.backward = gradient != nullptr;
  a.scale = routine.getScale().getValueAsDouble();
  a.operands = ins + static_cast<uint32_t>(call.getOuts().size());
  a.logSumExp = static_cast<uint32_t>(routine.getLogSumExp() + ofResult);
  a.query = viewOf(routine.getQuery(), 0);
  a.key = viewOf(routine.getKey(), 0);
  a.value = viewOf(routine.getValue(), 0);
  a.result = viewOf(routine.getResult(), ofResult);
  if (gradient) {
    a.dresult = viewOf(gradient.getDresult(), 0);
    a.dquery = viewOf(gradient.getDquery(), ins);
    a.dkey = viewOf(gradient.getDkey(), ins);
    a.dvalue = viewOf(gradient.getDvalue(), ins);
  }
  const int64_t workspace = plannedAttentionWorkspace(a);
  if (!suitsLibrary(a) || workspace == 0)
    return std::nullopt;
  LibraryCall found;
  found.routine = LibraryRoutine::Attention;
  found.attention = a;
  found.workspace = workspace;
  return found;
}

} // namespace titan::codegen::cuda
