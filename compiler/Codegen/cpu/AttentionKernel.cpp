#include "compiler/Codegen/cpu/AttentionKernel.h"

#include "compiler/Codegen/cpu/AttentionBackward.h"
#include "compiler/Codegen/cpu/AttentionForward.h"
#include "dialects/Kernel/AttentionRoutine.h"

using namespace mlir;

namespace titan::codegen {

namespace {

/// The routine on blocks that it can walk: those of a target that has its sums in registers get
/// rows of whole vectors.
kernel::AttentionAttr onVectors(kernel::AttentionAttr attention, int64_t width) {
  kernel::AttentionBlocksAttr blocks = attention.getBlocks();
  if (blocks.getPadding() != 0 || blocks.getRows() % width != 0)
    return attention;
  return kernel::withBlocks(
      attention, kernel::AttentionBlocksAttr::get(attention.getContext(), blocks.getRows(),
                                                  blocks.getKeys(), width, blocks.getWorkspace()));
}

} // namespace

LogicalResult emitAttentionKernel(OpBuilder& builder, kernel::CallOp call, StringRef name,
                                  const VectorShape& shape) {
  auto asked = cast<kernel::AttentionAttr>(call.getRoutine());
  Location loc = call.getLoc();
  AttentionTypes types(asked, shape);
  kernel::AttentionAttr attention = onVectors(asked, types.width);
  if (int64_t padding = attention.getBlocks().getPadding();
      padding == 0 || padding % types.width != 0)
    return call.emitOpError("pads rows to ")
           << padding << " elements, which is no multiple of this target's vectors of "
           << types.width << ": use machine.attention_padding = " << types.width;
  OpBuilder::InsertionGuard guard(builder);
  func::FuncOp function = createKernelFunction(builder, loc, name);
  builder.setInsertionPointToStart(&function.getBody().front());
  FloatBuilder body(builder, loc, types.scalar, types.width);
  auto forUnits = [&](auto emitter) {
    body.loop(body.toIndex(function.getArgument(2)), body.toIndex(function.getArgument(3)), 1,
              [&](Value unit) { emitter.emitUnit(unit); });
    emitter.end();
  };
  if (attention.getGradient())
    forUnits(AttentionBackward(body, attention, types, function,
                               /*ownsSums=*/asked.getBlocks().getPadding() == 0));
  else
    forUnits(AttentionForward(body, attention, types, function));
  func::ReturnOp::create(builder, loc);
  if (int64_t bytes = stackBytes(function); bytes > mostStackBytes)
    return call.emitOpError("has blocks of ")
           << attention.getBlocks().getRows() << " rows, which take " << bytes
           << " bytes of the stack; " << mostStackBytes
           << " are there: use fewer rows (machine.attention_rows)";
  return success();
}

} // namespace titan::codegen
