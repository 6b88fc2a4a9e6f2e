#include "frontend/state/ElementTypes.h"

using namespace mlir;

namespace titan::frontend {

Type elementTypeOf(MLIRContext* context, DType dtype) {
  auto integer = [&](unsigned width, bool isUnsigned = false) {
    return IntegerType::get(context, width,
                            isUnsigned ? IntegerType::Unsigned : IntegerType::Signless);
  };
  switch (dtype) {
  case DType::F64:
    return Float64Type::get(context);
  case DType::F32:
    return Float32Type::get(context);
  case DType::F16:
    return Float16Type::get(context);
  case DType::BF16:
    return BFloat16Type::get(context);
  case DType::I64:
    return integer(64);
  case DType::I32:
    return integer(32);
  case DType::I16:
    return integer(16);
  case DType::I8:
    return integer(8);
  case DType::U32:
    return integer(32, true);
  case DType::U16:
    return integer(16, true);
  case DType::U8:
    return integer(8, true);
  case DType::Bool:
    return integer(1);
  }
  return {};
}

std::optional<DType> dtypeOf(Type element) {
  for (DType dtype : {DType::F64, DType::F32, DType::F16, DType::BF16, DType::I64, DType::I32,
                      DType::I16, DType::I8, DType::U32, DType::U16, DType::U8, DType::Bool})
    if (elementTypeOf(element.getContext(), dtype) == element)
      return dtype;
  return std::nullopt;
}

} // namespace titan::frontend
