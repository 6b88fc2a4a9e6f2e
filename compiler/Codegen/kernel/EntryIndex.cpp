#include "compiler/Codegen/kernel/EntryIndex.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <algorithm>

using namespace mlir;

namespace titan::codegen {

Value loadEntry(OpBuilder& builder, Location loc, Value pointer, Value i, IntegerType type,
                int64_t entries) {
  // A truth value is a byte in memory, and arithmetic knows no signedness.
  const unsigned bits = std::max(8u, type.getWidth());
  Type stored = builder.getIntegerType(bits), wide = builder.getI64Type();
  i = arith::IndexCastOp::create(builder, loc, wide, i);
  Value place =
      LLVM::GEPOp::create(builder, loc, pointer.getType(), stored, pointer, LLVM::GEPArg(i));
  Value value = LLVM::LoadOp::create(builder, loc, stored, place, bits / 8);
  const bool isUnsigned = type.isUnsigned() || type.getWidth() == 1;
  if (stored != wide)
    value = isUnsigned ? arith::ExtUIOp::create(builder, loc, wide, value).getResult()
                       : arith::ExtSIOp::create(builder, loc, wide, value).getResult();
  auto bound = [&](int64_t number) {
    return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(number));
  };
  // An unsigned index of 64 bits may look negative; it is too large.
  if (isUnsigned)
    value = arith::MinUIOp::create(builder, loc, value, bound(entries - 1));
  else {
    value = arith::MaxSIOp::create(builder, loc, value, bound(0));
    value = arith::MinSIOp::create(builder, loc, value, bound(entries - 1));
  }
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value);
}

Value rowOfEntry(OpBuilder& builder, Location loc, Value i, Value entry,
                 const ir::ScatterShape& shape) {
  auto number = [&](int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value).getResult();
  };
  auto add = [&](Value a, Value b) {
    return arith::AddIOp::create(builder, loc, a, b).getResult();
  };
  auto mul = [&](Value a, int64_t b) {
    return b == 1 ? a : arith::MulIOp::create(builder, loc, a, number(b)).getResult();
  };
  if (shape.outer > 1) {
    Value outer = arith::DivUIOp::create(builder, loc, i, number(shape.rows * shape.inner));
    entry = add(mul(outer, shape.entries), entry);
  }
  if (shape.inner > 1) {
    Value inner = arith::RemUIOp::create(builder, loc, i, number(shape.inner));
    entry = add(mul(entry, shape.inner), inner);
  }
  return entry;
}

} // namespace titan::codegen
