// The instructions that the interpreter knows, by the names that LLVM prints.
#pragma once

#include "runtime/device/cuda/testing/ptx/Module.h"

namespace titan::ptx {

/// An instruction without its operands. Loads, stores and branches are not here: see Decode.cpp.
struct Opcode {
  static constexpr int maxWidths = Instruction::maxOperands;

  Kind kind = Kind::Lanes;
  Class counter = Class::Integer;
  LaneFunction lanes = nullptr;
  uint8_t results = 1, sources = 1;
  std::array<Width, maxWidths> widths{}; ///< results first
  /// A register may be wider than the operand: then `lanes` finds the bytes of the result's and
  /// the source's register behind the two offsets (cvt).
  bool widens = false;
  /// The second result may be left out: `setp p` for `setp p|q`.
  bool optionalResult = false;
  ShuffleMode shuffle = ShuffleMode::Up;
  VoteMode vote = VoteMode::All;
};

using OpcodeTable = std::unordered_map<std::string, Opcode>;

/// The table of all of them; made once.
const OpcodeTable& opcodes();

void addInteger(OpcodeTable& table);
void addBits(OpcodeTable& table);
void addFloat(OpcodeTable& table);
void addBfloat(OpcodeTable& table);
void addCompare(OpcodeTable& table);
void addConvert(OpcodeTable& table);
void addMove(OpcodeTable& table);
void addExchange(OpcodeTable& table);

/// How an element of `bytes` reaches a register of `width` bytes, which may be wider, and back.
MoveFunction loadFunction(int bytes, int width, bool isSigned);
MoveFunction storeFunction(int bytes, int width);

} // namespace titan::ptx
