// Instructions of one entry: from tokens to what the run loop executes.
#pragma once

#include "runtime/device/cuda/testing/ptx/Cursor.h"
#include "runtime/device/cuda/testing/ptx/Opcodes.h"

namespace titan::ptx {

/// A variable that an instruction may name. Shared ones get their place in an entry when it first
/// names them; a dynamic one (`.extern .shared`) behind all others.
struct Variable {
  Space space = Space::Shared;
  uint64_t address = 0;
  uint32_t bytes = 0, alignment = 1;
  bool dynamic = false, placed = false;
};

using Variables = std::unordered_map<std::string, Variable>;

/// Of a register, for messages.
const char* nameOf(Width width);

Error unknownInstruction(std::string_view mnemonic, uint32_t line);

class Decoder {
public:
  /// `entry` has its parameters; `variables` are those of the module.
  Decoder(Entry& entry, const Variables& variables);

  /// A `.reg` declaration, behind the directive; up to its semicolon.
  Status declareRegisters(Cursor& cursor);
  /// A `.shared` variable of this entry. False: there is one of that name.
  bool declareVariable(const std::string& name, const Variable& variable) {
    return variables_.emplace(name, variable).second;
  }
  Status label(std::string_view name, uint32_t line);
  /// LLVM's word that a register's value does not matter.
  Status implicitDef(std::string_view name, uint32_t line);
  /// One statement, up to its semicolon.
  Status instruction(Cursor& cursor);
  /// Labels become targets; dynamic shared memory gets its place behind the static.
  Status finish(uint32_t line);

private:
  struct Operand {
    enum class Kind : uint8_t { Register, Immediate, Name, List, Sink, Address };

    Kind kind = Kind::Sink;
    std::string name{};          ///< register, variable or label; of an address: its base
    uint64_t bits = 0;           ///< immediate; offset of an address or of a name
    uint8_t floatBytes = 0;      ///< 4 or 8 for 0f and 0d
    bool numeric = false;        ///< the address has no name
    std::vector<Operand> list{}; ///< {a, b}
  };
  struct Branch {
    uint32_t instruction;
    std::string label;
  };

  Result<std::vector<Operand>> operands(Cursor& cursor);
  Result<Operand> operand(Cursor& cursor);
  Result<Operand> address(Cursor& cursor);
  Result<Operand> immediate(Cursor& cursor);
  Status guard(Cursor& cursor, Instruction& into);

  Status decode(std::string_view mnemonic, const std::vector<Operand>& operands, Instruction& into);
  Status decodeTable(const std::string& mnemonic, std::vector<Operand> operands, Instruction& into);
  Status decodeMemory(std::string_view mnemonic, const std::vector<Operand>& operands,
                      Instruction& into);
  Status decodeMatrixLoad(std::string_view mnemonic, const std::vector<Operand>& operands,
                          Instruction& into);
  Status decodeCopy(std::string_view mnemonic, const std::vector<Operand>& operands,
                    Instruction& into);
  Status decodeBranch(const std::vector<Operand>& operands, Instruction& into);
  Status decodeBarrierCount(std::vector<Operand>& operands, Instruction& into);
  Status decodeGroupCount(std::vector<Operand>& operands, Instruction& into);
  Result<Variable> variable(const std::string& name, uint32_t line);
  Status setAddress(const Operand& operand, Space space, Address& address, Instruction& into);
  void noteGranules(const Instruction& instruction);
  Status addressOfParameter(const Operand& operand, Instruction& into);

  Status bind(const Operand& operand, Width width, bool wider, bool isResult, Instruction& into);
  Result<uint32_t> resultRegister(const Operand& operand, Width width, bool wider, uint32_t line);
  Result<uint32_t> sourceRegister(const Operand& operand, Width width, bool wider, uint32_t line);
  Result<uint32_t> declared(const Operand& operand, Width width, bool wider, uint32_t line);
  void undefineUnwritten();
  uint32_t addRegister(const std::string& name, Width width);
  uint32_t preset(Preset::Value value, uint64_t bits, Width width, bool dynamic = false);
  uint32_t sink(Width width);

  Entry& entry_;
  Variables variables_;
  std::unordered_map<std::string, uint32_t> registers_, labels_;
  std::unordered_map<std::string, uint32_t> presets_; ///< by width, kind and bits
  std::vector<Branch> branches_;
  /// Instructions and presets that hold an address in dynamic shared memory.
  std::vector<uint32_t> dynamicAddresses_, dynamicPresets_;
};

} // namespace titan::ptx
