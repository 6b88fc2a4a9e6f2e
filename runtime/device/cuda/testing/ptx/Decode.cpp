#include "runtime/device/cuda/testing/ptx/Decode.h"

#include <algorithm>
#include <cstring>

namespace titan::ptx {

const char* nameOf(Width width) {
  switch (width) {
  case Width::Predicate:
    return "a predicate";
  case Width::W8:
    return "8 bits";
  case Width::W16:
    return "16 bits";
  case Width::W32:
    return "32 bits";
  case Width::W64:
    return "64 bits";
  }
  return "";
}

namespace {

/// The type of a register declaration; no value: there is no such type.
std::optional<Width> registerWidth(std::string_view type) {
  if (type == ".pred")
    return Width::Predicate;
  if (type == ".b16" || type == ".u16" || type == ".s16")
    return Width::W16;
  if (type == ".b32" || type == ".u32" || type == ".s32" || type == ".f32")
    return Width::W32;
  if (type == ".b64" || type == ".u64" || type == ".s64" || type == ".f64")
    return Width::W64;
  return std::nullopt;
}

const std::unordered_map<std::string_view, Preset::Value>& specialRegisters() {
  using enum Preset::Value;
  static const std::unordered_map<std::string_view, Preset::Value> table{
      {"%tid.x", TidX},     {"%tid.y", TidY},       {"%tid.z", TidZ},       {"%ntid.x", NtidX},
      {"%ntid.y", NtidY},   {"%ntid.z", NtidZ},     {"%ctaid.x", CtaidX},   {"%ctaid.y", CtaidY},
      {"%ctaid.z", CtaidZ}, {"%nctaid.x", NctaidX}, {"%nctaid.y", NctaidY}, {"%nctaid.z", NctaidZ},
      {"%laneid", LaneId},  {"%warpid", WarpId},    {"%nwarpid", NwarpId}};
  return table;
}

/// Whether `bits`, as a number with or without sign, has this width.
bool fits(uint64_t bits, Width width) {
  if (width == Width::W64)
    return true;
  if (width == Width::Predicate)
    return bits <= 1 || bits == ~uint64_t{0}; // LLVM writes a true one as -1
  int count = 8 * static_cast<int>(width);
  auto value = static_cast<int64_t>(bits);
  return value >= -(int64_t{1} << (count - 1)) && value < int64_t{1} << count;
}

uint32_t alignTo(uint32_t value, uint32_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

} // namespace

Error unknownInstruction(std::string_view mnemonic, uint32_t line) {
  for (const char* name : {"add", "sub", "mul"})
    for (const char* type : {".f32", ".f64"})
      if (mnemonic == std::string(name) + type)
        return errorAt(line, "{} may become part of an fma when it is assembled: write {}.rn{}",
                       mnemonic, name, type);
  return errorAt(line, "the interpreter has no instruction {}", mnemonic);
}

Decoder::Decoder(Entry& entry, const Variables& variables) : entry_(entry), variables_(variables) {}

uint32_t Decoder::addRegister(const std::string& name, Width width) {
  auto number = static_cast<uint32_t>(entry_.registers.size());
  entry_.registers.push_back({name, entry_.fileBytes, width});
  uint32_t bytes = width == Width::Predicate ? sizeof(Mask) : warpSize * static_cast<int>(width);
  entry_.fileBytes += alignTo(bytes, 64);
  return number;
}

uint32_t Decoder::preset(Preset::Value value, uint64_t bits, Width width, bool dynamic) {
  std::string key =
      fmt::format("{} {} {} {}", static_cast<int>(value), bits, static_cast<int>(width), dynamic);
  auto [found, isNew] = presets_.emplace(key, 0);
  if (!isNew)
    return found->second;
  found->second = addRegister("", width);
  if (dynamic)
    dynamicPresets_.push_back(static_cast<uint32_t>(entry_.presets.size()));
  entry_.presets.push_back({value, bits, found->second});
  return found->second;
}

uint32_t Decoder::sink(Width width) {
  auto [found, isNew] = presets_.emplace(fmt::format("_ {}", static_cast<int>(width)), 0);
  if (isNew)
    found->second = addRegister("_", width);
  return found->second;
}

Status Decoder::declareRegisters(Cursor& cursor) {
  uint32_t line = cursor.line();
  std::string_view type = TITAN_TRY(cursor.word("a type"));
  std::optional<Width> width = registerWidth(type);
  if (!width)
    return errorAt(line, "the interpreter has no registers of type {}", type);
  do {
    std::string name(TITAN_TRY(cursor.word("a register's name")));
    bool many = cursor.accept("<");
    uint64_t count = 1;
    if (many) {
      count = TITAN_TRY(cursor.number("a number of registers"));
      TITAN_TRY(cursor.expect(">"));
    }
    // A kernel has some hundreds; what is far above would only fill memory.
    if (count + entry_.registers.size() > 65536)
      return errorAt(line, "{} registers {} are more than the interpreter has", count, name);
    for (uint64_t i = 0; i < count; ++i) {
      std::string full = many ? name + std::to_string(i) : name;
      if (specialRegisters().count(full) || !registers_.emplace(full, 0).second)
        return errorAt(line, "register {} is declared twice", full);
      registers_[full] = addRegister(full, *width);
    }
  } while (cursor.accept(","));
  return cursor.expect(";");
}

Status Decoder::label(std::string_view name, uint32_t line) {
  auto at = static_cast<uint32_t>(entry_.code.size());
  if (!labels_.emplace(name, at).second)
    return errorAt(line, "label {} stands here twice", name);
  return {};
}

Status Decoder::implicitDef(std::string_view name, uint32_t line) {
  Instruction instruction{.kind = Kind::Undefine, .counter = Class::Move, .line = line};
  Operand operand{.kind = Operand::Kind::Register, .name = std::string(name)};
  auto found = registers_.find(operand.name);
  if (found == registers_.end())
    return errorAt(line, "register {} is not declared", name);
  Width width = entry_.registers[found->second].width;
  TITAN_TRY(bind(operand, width, false, true, instruction));
  entry_.code.push_back(instruction);
  entry_.texts.push_back("implicit-def " + operand.name);
  return {};
}

Result<Decoder::Operand> Decoder::immediate(Cursor& cursor) {
  bool negative = cursor.accept("-");
  const Token& token = cursor.peek();
  Operand result{.kind = Operand::Kind::Immediate};
  std::string_view text = token.text;
  bool isFloat = text.size() > 1 && text[0] == '0' &&
                 std::string_view("fFdD").find(text[1]) != std::string_view::npos;
  if (token.kind == Token::Kind::Number && isFloat && !negative) {
    result.floatBytes = text[1] == 'f' || text[1] == 'F' ? 4 : 8;
    std::optional<uint64_t> bits;
    if (text.size() == 2u + 2 * result.floatBytes)
      bits = unsignedOf("0x" + std::string(text.substr(2)));
    if (!bits)
      return errorAt(token.line, "{} is not a float: 0f has 8 digits, 0d has 16", text);
    result.bits = *bits;
    cursor.next();
    return result;
  }
  uint64_t value = TITAN_TRY(cursor.number("an operand"));
  result.bits = negative ? uint64_t{0} - value : value;
  return result;
}

Result<Decoder::Operand> Decoder::address(Cursor& cursor) {
  Operand result{.kind = Operand::Kind::Address};
  if (cursor.peek().kind == Token::Kind::Word)
    result.name = cursor.next().text;
  else
    result.numeric = true;
  if (result.numeric || cursor.accept("+") || cursor.peek().is("-"))
    result.bits = TITAN_TRY(immediate(cursor)).bits;
  TITAN_TRY(cursor.expect("]"));
  return result;
}

Result<Decoder::Operand> Decoder::operand(Cursor& cursor) {
  if (cursor.accept("["))
    return address(cursor);
  if (cursor.accept("{")) {
    Operand result{.kind = Operand::Kind::List};
    do
      result.list.push_back(TITAN_TRY(operand(cursor)));
    while (result.list.size() < Instruction::maxOperands && cursor.accept(","));
    TITAN_TRY(cursor.expect("}"));
    return result;
  }
  if (cursor.peek().is("!"))
    return errorAt(cursor.line(), "the interpreter negates predicates of branches only");
  if (cursor.peek().kind != Token::Kind::Word)
    return immediate(cursor);
  Operand result{.name = std::string(cursor.next().text)};
  if (result.name == "_")
    return result;
  bool isRegister = registers_.count(result.name) || specialRegisters().count(result.name);
  result.kind = isRegister ? Operand::Kind::Register : Operand::Kind::Name;
  if (!isRegister && cursor.accept("+"))
    result.bits = TITAN_TRY(immediate(cursor)).bits;
  return result;
}

Result<std::vector<Decoder::Operand>> Decoder::operands(Cursor& cursor) {
  std::vector<Operand> result;
  if (cursor.accept(";"))
    return result;
  do
    result.push_back(TITAN_TRY(operand(cursor)));
  while (result.size() <= Instruction::maxOperands && (cursor.accept(",") || cursor.accept("|")));
  TITAN_TRY(cursor.expect(";"));
  return result;
}

Status Decoder::guard(Cursor& cursor, Instruction& into) {
  if (!cursor.accept("@"))
    return {};
  into.guarded = true;
  into.guardNegated = cursor.accept("!");
  Operand predicate{.kind = Operand::Kind::Register,
                    .name = std::string(TITAN_TRY(cursor.word("a predicate")))};
  into.guardIndex = TITAN_TRY(declared(predicate, Width::Predicate, false, into.line));
  into.guardAt = entry_.registers[into.guardIndex].at;
  return {};
}

Status Decoder::instruction(Cursor& cursor) {
  Instruction made{.line = cursor.line()};
  TITAN_TRY(guard(cursor, made));
  std::string mnemonic(TITAN_TRY(cursor.word("an instruction")));
  std::vector<Operand> list = TITAN_TRY(operands(cursor));
  TITAN_TRY(decode(mnemonic, list, made));
  bool together = made.kind == Kind::Barrier || made.kind == Kind::WarpSync ||
                  made.kind == Kind::Shuffle || made.kind == Kind::Vote ||
                  made.kind == Kind::LoadMatrix || made.kind == Kind::Multiply;
  if (made.guarded && together)
    return errorAt(made.line, "{} under a predicate is not for all lanes: branch around it",
                   mnemonic);
  entry_.code.push_back(made);
  entry_.texts.push_back(mnemonic);
  return {};
}

Status Decoder::decode(std::string_view mnemonic, const std::vector<Operand>& operands,
                       Instruction& into) {
  if (mnemonic == "bra" || mnemonic == "bra.uni")
    return decodeBranch(operands, into);
  if (mnemonic.starts_with("ld.") || mnemonic.starts_with("st."))
    return decodeMemory(mnemonic, operands, into);
  if (mnemonic.starts_with("ldmatrix."))
    return decodeMatrixLoad(mnemonic, operands, into);
  if (mnemonic.starts_with("cp.async.c") && mnemonic.ends_with(".shared.global"))
    return decodeCopy(mnemonic, operands, into);
  std::string name(mnemonic);
  std::vector<Operand> flat;
  for (const Operand& operand : operands) {
    if (operand.kind != Operand::Kind::List) {
      flat.push_back(operand);
      continue;
    }
    const char* form = flat.empty() ? "unpack" : "pack";
    name += fmt::format(" {} {}", form, operand.list.size());
    flat.insert(flat.end(), operand.list.begin(), operand.list.end());
  }
  return decodeTable(name, std::move(flat), into);
}

Status Decoder::decodeTable(const std::string& mnemonic, std::vector<Operand> operands,
                            Instruction& into) {
  auto found = opcodes().find(mnemonic);
  if (found == opcodes().end())
    return unknownInstruction(mnemonic, into.line);
  const Opcode& opcode = found->second;
  into.kind = opcode.kind;
  into.counter = opcode.counter;
  into.lanes = opcode.lanes;
  into.shuffle = opcode.shuffle;
  into.vote = opcode.vote;
  into.number = opcode.kind == Kind::WaitCopies ? allCopies : 0;
  if (into.kind == Kind::Barrier)
    TITAN_TRY(decodeBarrierCount(operands, into));
  if (mnemonic == "cp.async.wait_group")
    TITAN_TRY(decodeGroupCount(operands, into));
  size_t wanted = opcode.results + opcode.sources;
  if (opcode.optionalResult && operands.size() + 1 == wanted)
    operands.insert(operands.begin() + 1, Operand{});
  if (operands.size() != wanted)
    return errorAt(into.line, "{} has {} operands, not {}", mnemonic, wanted, operands.size());
  for (size_t i = 0; i < wanted; ++i)
    TITAN_TRY(bind(operands[i], opcode.widths[i], opcode.widens, i < opcode.results, into));
  if (opcode.widens)
    for (int i = 0; i < 2; ++i)
      into.at[2 + i] = static_cast<uint32_t>(entry_.registers[into.index[i]].width);
  return {};
}

/// `bar.sync 0, 128`: a barrier for so many threads. The run loop asks that they are the block's.
Status Decoder::decodeBarrierCount(std::vector<Operand>& operands, Instruction& into) {
  if (operands.size() != 2)
    return {};
  if (operands[1].kind != Operand::Kind::Immediate)
    return errorAt(into.line, "the threads of a barrier are a number");
  into.number = static_cast<int64_t>(operands[1].bits);
  operands.pop_back();
  return {};
}

/// `cp.async.wait_group 2`.
Status Decoder::decodeGroupCount(std::vector<Operand>& operands, Instruction& into) {
  if (operands.size() != 1 || operands[0].kind != Operand::Kind::Immediate)
    return errorAt(into.line, "the groups that a wait leaves are a number");
  into.number = static_cast<int64_t>(operands[0].bits);
  operands.clear();
  return {};
}

Status Decoder::decodeBranch(const std::vector<Operand>& operands, Instruction& into) {
  if (operands.size() != 1 || operands[0].kind != Operand::Kind::Name)
    return errorAt(into.line, "bra has one label");
  into.kind = Kind::Branch;
  into.counter = Class::Control;
  branches_.push_back({static_cast<uint32_t>(entry_.code.size()), operands[0].name});
  return {};
}

Result<Variable> Decoder::variable(const std::string& name, uint32_t line) {
  auto found = variables_.find(name);
  if (found == variables_.end())
    return errorAt(line, "'{}' is neither a register nor a variable here", name);
  Variable& variable = found->second;
  if (variable.space != Space::Shared || variable.placed)
    return variable;
  variable.placed = true;
  if (variable.dynamic) {
    entry_.dynamicAlignment = std::max(entry_.dynamicAlignment, variable.alignment);
    return variable;
  }
  entry_.sharedBytes = alignTo(entry_.sharedBytes, variable.alignment);
  variable.address = sharedBase + entry_.sharedBytes;
  entry_.sharedBytes += variable.bytes;
  return variable;
}

Status Decoder::bind(const Operand& operand, Width width, bool wider, bool isResult,
                     Instruction& into) {
  size_t slot = into.results + into.sources;
  uint32_t number = isResult ? TITAN_TRY(resultRegister(operand, width, wider, into.line))
                             : TITAN_TRY(sourceRegister(operand, width, wider, into.line));
  into.index[slot] = number;
  into.at[slot] = entry_.registers[number].at;
  ++(isResult ? into.results : into.sources);
  return {};
}

Result<uint32_t> Decoder::declared(const Operand& operand, Width width, bool wider, uint32_t line) {
  auto found = registers_.find(operand.name);
  if (operand.kind != Operand::Kind::Register || found == registers_.end())
    return errorAt(line, "'{}' is not a register here", operand.name);
  Width has = entry_.registers[found->second].width;
  bool right = has == width || (wider && has > width && width != Width::Predicate);
  if (!right)
    return errorAt(line, "register {} has {}, the instruction wants {}", operand.name, nameOf(has),
                   nameOf(width));
  return found->second;
}

Result<uint32_t> Decoder::resultRegister(const Operand& operand, Width width, bool wider,
                                         uint32_t line) {
  if (operand.kind == Operand::Kind::Sink)
    return sink(std::max(width, width == Width::Predicate ? width : Width::W16));
  return declared(operand, width, wider, line);
}

Result<uint32_t> Decoder::sourceRegister(const Operand& operand, Width width, bool wider,
                                         uint32_t line) {
  Width held = width == Width::W8 ? Width::W16 : width;
  switch (operand.kind) {
  case Operand::Kind::Register: {
    auto special = specialRegisters().find(operand.name);
    if (special == specialRegisters().end())
      return declared(operand, width, wider, line);
    if (held != Width::W32)
      return errorAt(line, "register {} has 32 bits, the instruction wants {}", operand.name,
                     nameOf(width));
    return preset(special->second, 0, held);
  }
  case Operand::Kind::Immediate:
    if (operand.floatBytes ? operand.floatBytes != static_cast<int>(width)
                           : !fits(operand.bits, width))
      return errorAt(line, "the immediate 0x{:x} does not have {}", operand.bits, nameOf(width));
    return preset(Preset::Value::Immediate, operand.bits, held);
  case Operand::Kind::Name: {
    Variable found = TITAN_TRY(variable(operand.name, line));
    bool narrow = found.space == Space::Shared && width == Width::W32;
    if (width != Width::W64 && !narrow)
      return errorAt(line, "the address of {} does not have {}", operand.name, nameOf(width));
    return preset(Preset::Value::Immediate, found.address + operand.bits, held, found.dynamic);
  }
  default:
    return errorAt(line, "an operand of another kind is wanted here");
  }
}

/// A register that nothing writes is LLVM's word that its value does not matter, as where one part
/// of a vector does not.
void Decoder::undefineUnwritten() {
  std::vector<bool> isKnown(entry_.registers.size());
  for (const Preset& preset : entry_.presets)
    isKnown[preset.reg] = true;
  for (const Instruction& each : entry_.code)
    for (int i = 0; i < each.results; ++i)
      isKnown[each.index[i]] = true;
  auto undefine = [&](uint32_t number) {
    if (!isKnown[number])
      entry_.presets.push_back({Preset::Value::Undefined, 0, number});
    isKnown[number] = true;
  };
  for (const Instruction& each : entry_.code) {
    for (int i = each.results; i < each.results + each.sources; ++i)
      undefine(each.index[i]);
    if (each.guarded)
      undefine(each.guardIndex);
  }
}

/// How finely accesses are told apart.
void Decoder::noteGranules(const Instruction& instruction) {
  auto narrow = [](uint8_t& granule, int64_t bytes) {
    granule = static_cast<uint8_t>(std::min<int64_t>(granule, bytes));
  };
  const bool loadsOrStores = instruction.kind == Kind::Load || instruction.kind == Kind::Store;
  const bool either = loadsOrStores && instruction.space == Space::Generic;
  if (instruction.kind == Kind::Copy || either ||
      (loadsOrStores && instruction.space == Space::Shared))
    narrow(entry_.sharedGranule, instruction.bytes());
  // The bytes of a copy that are read are some of those that are written.
  if (instruction.kind == Kind::Copy)
    narrow(entry_.globalGranule,
           std::min<int64_t>(instruction.bytes(), instruction.partial ? 1 : 16));
  if (either || (loadsOrStores && instruction.space == Space::Global))
    narrow(entry_.globalGranule, instruction.bytes());
}

Status Decoder::finish(uint32_t line) {
  if (entry_.code.empty() ||
      (entry_.code.back().kind != Kind::Exit && entry_.code.back().kind != Kind::Branch) ||
      entry_.code.back().guarded)
    return errorAt(line, "entry {} runs over its end: its last instruction is no ret", entry_.name);
  for (const Branch& branch : branches_) {
    auto found = labels_.find(branch.label);
    uint32_t at = entry_.code[branch.instruction].line;
    if (found == labels_.end() || found->second >= entry_.code.size())
      return errorAt(at, "label {} has no instruction", branch.label);
    entry_.code[branch.instruction].target = found->second;
  }
  undefineUnwritten();
  entry_.sharedBytes = alignTo(entry_.sharedBytes, std::max(entry_.dynamicAlignment, 1u));
  for (uint32_t at : dynamicAddresses_)
    entry_.code[at].address.offset += int64_t(sharedBase + entry_.sharedBytes);
  for (uint32_t at : dynamicPresets_)
    entry_.presets[at].bits += sharedBase + entry_.sharedBytes;
  for (const Instruction& each : entry_.code)
    noteGranules(each);
  return {};
}

} // namespace titan::ptx
