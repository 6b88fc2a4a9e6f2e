#include "compiler/Codegen/cpu/AttentionKernel.h"

#include "compiler/Codegen/cpu/AttentionBackward.h"
#include "compiler/Codegen/cpu/AttentionForward.h"

using namespace mlir;

namespace titan::codegen {

func::FuncOp emitAttentionKernel(OpBuilder& builder, Location loc, kernel::AttentionAttr attention,
                                 StringRef name, const VectorShape& shape) {
  OpBuilder::InsertionGuard guard(builder);
  func::FuncOp function = createKernelFunction(builder, loc, name);
  builder.setInsertionPointToStart(&function.getBody().front());
  AttentionTypes types(attention, shape);
  AttentionBuilder body(builder, loc, types.scalar, types.width);
  auto forUnits = [&](auto emitter) {
    body.loop(body.toIndex(function.getArgument(2)), body.toIndex(function.getArgument(3)), 1,
              [&](Value unit) { emitter.emitUnit(unit); });
  };
  if (attention.getGradient())
    forUnits(AttentionBackward(body, attention, types, function));
  else
    forUnits(AttentionForward(body, attention, types, function));
  func::ReturnOp::create(builder, loc);
  return function;
}

} // namespace titan::codegen
