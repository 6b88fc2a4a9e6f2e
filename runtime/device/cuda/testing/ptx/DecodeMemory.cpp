// Instructions that have addresses: ld, st, ldmatrix, cp.async.
#include "runtime/device/cuda/testing/ptx/Decode.h"

#include <algorithm>

namespace titan::ptx {
namespace {

std::vector<std::string_view> partsOf(std::string_view mnemonic) {
  std::vector<std::string_view> parts;
  for (size_t start = 0; start <= mnemonic.size();) {
    size_t end = std::min(mnemonic.find('.', start), mnemonic.size());
    parts.push_back(mnemonic.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

} // namespace

Status Decoder::decodeMemory(std::string_view mnemonic, const std::vector<Operand>& operands,
                             Instruction& into) {
  std::vector<std::string_view> parts = partsOf(mnemonic);
  size_t at = 1;
  auto accept = [&](std::string_view part) {
    return at < parts.size() && parts[at] == part && ++at;
  };
  bool isLoad = parts[0] == "ld";
  into.kind = isLoad ? Kind::Load : Kind::Store;
  into.counter = Class::Memory;
  into.space = accept("global")   ? Space::Global
               : accept("shared") ? Space::Shared
               : accept("const")  ? Space::Constant
               : accept("param")  ? Space::Parameter
                                  : Space::Generic;
  if (into.space == Space::Global && isLoad && accept("nc"))
    into.space = Space::ReadOnly;
  into.elements = accept("v2") ? 2 : accept("v4") ? 4 : 1;
  static const std::unordered_map<std::string_view, int> types{
      {"b8", 1},  {"u8", 1},  {"s8", 1},  {"b16", 2}, {"u16", 2}, {"s16", 2}, {"b32", 4},
      {"u32", 4}, {"s32", 4}, {"f32", 4}, {"b64", 8}, {"u64", 8}, {"s64", 8}, {"f64", 8}};
  auto type = at + 1 == parts.size() ? types.find(parts[at]) : types.end();
  bool writable = into.space != Space::Constant && into.space != Space::Parameter;
  if (type == types.end() || !(isLoad || writable))
    return unknownInstruction(mnemonic, into.line);
  into.elementBytes = static_cast<uint8_t>(type->second);
  if (operands.size() != 2)
    return errorAt(into.line, "{} has 2 operands, not {}", mnemonic, operands.size());
  const Operand& place = operands[isLoad ? 1 : 0];
  const Operand& value = operands[isLoad ? 0 : 1];
  std::vector<Operand> values{value};
  if (value.kind == Operand::Kind::List)
    values = value.list;
  if (place.kind != Operand::Kind::Address || values.size() != into.elements)
    return errorAt(into.line, "{} has an address and {} registers", mnemonic, into.elements);
  auto width = static_cast<Width>(into.elementBytes);
  if (isLoad)
    for (const Operand& each : values)
      TITAN_TRY(bind(each, width, true, true, into));
  if (into.space == Space::Parameter)
    TITAN_TRY(addressOfParameter(place, into));
  else
    TITAN_TRY(setAddress(place, into.space, into.address, into));
  if (!isLoad)
    for (const Operand& each : values)
      TITAN_TRY(bind(each, width, true, false, into));
  // All elements have registers of one width: a move goes by it.
  int first = isLoad ? 0 : into.address.registered;
  Width column = entry_.registers[into.index[first]].width;
  for (int i = 0; i < into.elements; ++i)
    if (entry_.registers[into.index[first + i]].width != column)
      return errorAt(into.line, "registers of {} differ in width", mnemonic);
  int bytes = static_cast<int>(column);
  into.move = isLoad ? loadFunction(into.elementBytes, bytes, type->first[0] == 's')
                     : storeFunction(into.elementBytes, bytes);
  return {};
}

/// `ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {a, b, c, d}, [address]`.
Status Decoder::decodeMatrixLoad(std::string_view mnemonic, const std::vector<Operand>& operands,
                                 Instruction& into) {
  std::string_view rest = mnemonic;
  auto accept = [&](std::string_view part) {
    bool found = rest.starts_with(part);
    rest.remove_prefix(found ? part.size() : 0);
    return found;
  };
  bool known = accept("ldmatrix.sync.aligned.m8n8");
  into.kind = Kind::LoadMatrix;
  into.counter = Class::Memory;
  into.space = Space::Shared;
  into.elements = accept(".x4") ? 4 : accept(".x2") ? 2 : accept(".x1") ? 1 : 0;
  into.elementBytes = 4;
  into.transposes = accept(".trans");
  if (!known || into.elements == 0 || rest != ".shared.b16")
    return unknownInstruction(mnemonic, into.line);
  bool right = operands.size() == 2 && operands[0].kind == Operand::Kind::List &&
               operands[0].list.size() == into.elements &&
               operands[1].kind == Operand::Kind::Address;
  if (!right)
    return errorAt(into.line, "{} has a list of {} registers and an address", mnemonic,
                   into.elements);
  for (const Operand& each : operands[0].list)
    TITAN_TRY(bind(each, Width::W32, false, true, into));
  return setAddress(operands[1], Space::Shared, into.address, into);
}

/// `cp.async.cg.shared.global [to], [from], 16, 12`: the last, of which there may be none, is how
/// many bytes are read; the others are 0.
Status Decoder::decodeCopy(std::string_view mnemonic, const std::vector<Operand>& operands,
                           Instruction& into) {
  const bool cachesAll = mnemonic == "cp.async.ca.shared.global";
  if (!cachesAll && mnemonic != "cp.async.cg.shared.global")
    return unknownInstruction(mnemonic, into.line);
  into.kind = Kind::Copy;
  into.counter = Class::Memory;
  const bool addressed = (operands.size() == 3 || operands.size() == 4) &&
                         operands[0].kind == Operand::Kind::Address &&
                         operands[1].kind == Operand::Kind::Address &&
                         operands[2].kind == Operand::Kind::Immediate;
  if (!addressed)
    return errorAt(into.line, "{} has two addresses and a number of bytes", mnemonic);
  const uint64_t bytes = operands[2].bits;
  if (bytes != 16 && !(cachesAll && (bytes == 4 || bytes == 8)))
    return errorAt(into.line, "{} copies {}16 bytes, not {}", mnemonic, cachesAll ? "4, 8 or " : "",
                   bytes);
  into.elementBytes = static_cast<uint8_t>(bytes);
  TITAN_TRY(setAddress(operands[0], Space::Shared, into.address, into));
  TITAN_TRY(setAddress(operands[1], Space::Global, into.source, into));
  into.partial = operands.size() == 4;
  return into.partial ? bind(operands[3], Width::W32, false, false, into) : Status();
}

Status Decoder::addressOfParameter(const Operand& operand, Instruction& into) {
  for (const Parameter& parameter : entry_.parameters) {
    if (parameter.name != operand.name)
      continue;
    if (operand.bits > parameter.bytes || into.bytes() > int64_t(parameter.bytes - operand.bits))
      return errorAt(into.line, "{} bytes at {} of parameter {}, which has {}", into.bytes(),
                     operand.bits, parameter.name, parameter.bytes);
    into.address.offset = int64_t(parameter.offset + operand.bits);
    into.counter = Class::Parameter;
    return {};
  }
  return errorAt(into.line, "entry {} has no parameter {}", entry_.name, operand.name);
}

Status Decoder::setAddress(const Operand& operand, Space space, Address& address,
                           Instruction& into) {
  address.offset = static_cast<int64_t>(operand.bits);
  auto named = registers_.find(operand.name);
  if (named != registers_.end()) {
    Width width = entry_.registers[named->second].width;
    address.registered = true;
    address.narrow = width == Width::W32;
    address.operand = static_cast<uint8_t>(into.results + into.sources);
    if (width != Width::W64 && !(width == Width::W32 && space == Space::Shared))
      return errorAt(into.line, "register {} has {}, too few for an address", operand.name,
                     nameOf(width));
    return bind({.kind = Operand::Kind::Register, .name = operand.name}, width, false, false, into);
  }
  if (operand.numeric)
    return {};
  Variable found = TITAN_TRY(variable(operand.name, into.line));
  if (found.space != space && !(found.space == Space::Global && space == Space::ReadOnly))
    return errorAt(into.line, "{} lies in another space", operand.name);
  if (found.dynamic)
    dynamicAddresses_.push_back(static_cast<uint32_t>(entry_.code.size()));
  address.offset += static_cast<int64_t>(found.address);
  return {};
}

} // namespace titan::ptx
