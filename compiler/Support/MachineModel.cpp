#include "compiler/Support/MachineModel.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>

using namespace mlir;

namespace titan {
namespace {

Attribute toAttribute(double value, Builder& builder) { return builder.getF64FloatAttr(value); }
Attribute toAttribute(int64_t value, Builder& builder) { return builder.getI64IntegerAttr(value); }

/// Of nothing, 0 is a count.
bool mayBeZero(StringRef field) {
  return field == "attention_padding" || field == "rounded_operand_tile_rows" ||
         field == "patches_in_place";
}

bool read(Attribute attribute, double& value) {
  auto number = dyn_cast<FloatAttr>(attribute);
  if (!number || !number.getType().isF64())
    return false;
  value = number.getValueAsDouble();
  return std::isfinite(value);
}

bool read(Attribute attribute, int64_t& value) {
  auto number = dyn_cast<IntegerAttr>(attribute);
  if (!number || !number.getType().isInteger(64))
    return false;
  value = number.getInt();
  return true;
}

/// Blocks of attention are of whole tiles (dialects/Kernel/AttentionRoutine.cpp).
LogicalResult checkAttention(const MachineModel& machine, ModuleOp module) {
  constexpr int64_t keysAtOnce = 8;
  auto check = [&](StringRef field, int64_t rows) -> LogicalResult {
    int64_t keys = std::min(machine.attentionKeys, rows);
    if (keys % keysAtOnce != 0)
      return module.emitError("the machine model's attention_keys = ")
             << machine.attentionKeys << " beside " << field << " = " << rows << " gives blocks of "
             << keys << " keys, no multiple of " << keysAtOnce;
    const int64_t padding = machine.attentionPadding;
    if (rows % keys != 0 || (padding != 0 && rows % padding != 0))
      return module.emitError("the machine model's ")
             << field << " = " << rows
             << " is no multiple of attention_keys = " << machine.attentionKeys
             << " and attention_padding = " << padding;
    return success();
  };
  return success(succeeded(check("attention_rows", machine.attentionRows)) &&
                 succeeded(check("attention_rows_of_wide", machine.attentionRowsOfWide)));
}

StringRef kindOf(double) { return "f64"; }
StringRef kindOf(int64_t) { return "i64"; }

} // namespace

DictionaryAttr toAttribute(const MachineModel& machine, MLIRContext* context) {
  Builder builder(context);
  SmallVector<NamedAttribute> fields;
  visitFields(machine, [&](StringRef name, auto value) {
    fields.push_back(builder.getNamedAttr(name, toAttribute(value, builder)));
  });
  return builder.getDictionaryAttr(fields);
}

FailureOr<MachineModel> readMachine(DictionaryAttr dictionary, ModuleOp module) {
  MachineModel machine;
  llvm::StringSet<> known;
  LogicalResult result = success();
  visitFields(machine, [&](StringRef name, auto& value) {
    known.insert(name);
    if (failed(result))
      return;
    Attribute attribute = dictionary.get(name);
    if (!attribute)
      result = module.emitError("the machine model has no field '") << name << "'";
    else if (!read(attribute, value) || value < 0 || (value == 0 && !mayBeZero(name)))
      result = module.emitError("the machine model's field '")
               << name << "' is " << attribute << ": a positive " << kindOf(value) << " is needed";
  });
  for (NamedAttribute field : dictionary)
    if (succeeded(result) && !known.contains(field.getName()))
      result = module.emitError("the machine model has an unknown field '")
               << field.getName().getValue() << "'";
  if (failed(result) || failed(checkAttention(machine, module)))
    return failure();
  return machine;
}

} // namespace titan
