// What a PTX text becomes: entries of instructions that need no look at the text any more.
//
// The registers of a warp are one block of memory, its file. A register is a column in it: 32
// values of its width, lane by lane; a predicate is one word with a bit a lane. Immediates and
// special registers (%tid.x) are columns as well, filled before the warp starts, so an operand is
// always an offset into the file.
#pragma once

#include "runtime/device/cuda/testing/ptx/Ptx.h"

#include <unordered_map>

namespace titan::ptx {

/// A bit a lane.
using Mask = uint32_t;
constexpr int warpSize = 32;

/// What the run loop does for an instruction.
enum class Kind : uint8_t {
  Lanes,  ///< `lanes` computes results from sources, each lane by itself
  Divide, ///< the same, but no lane may divide by zero
  Load,
  Store,
  LoadMatrix, ///< ldmatrix
  Multiply,   ///< mma
  Copy,       ///< cp.async
  CommitCopies,
  WaitCopies,
  Branch,
  Exit,
  Barrier, ///< of the block
  WarpSync,
  Shuffle,
  Vote,
  ActiveMask,
  Fence,
  Undefine, ///< LLVM says that the value does not matter: it gets one that nobody can rely on
};

/// Which counter an instruction belongs to.
enum class Class : uint8_t {
  Float32,
  Float64,
  Integer,
  Conversion,
  Move,
  Predicate,
  Memory,
  Parameter,
  Control,
  Exchange,
  Matrix,
};
constexpr int classCount = 11;

enum class Space : uint8_t { None, Parameter, Global, ReadOnly, Shared, Constant, Generic };
enum class ShuffleMode : uint8_t { Up, Down, Butterfly, Index };
enum class VoteMode : uint8_t { All, Any, Uniform, Ballot };

/// Bytes that a lane has in a register's column; a predicate has a bit.
enum class Width : uint8_t { Predicate = 0, W8 = 1, W16 = 2, W32 = 4, W64 = 8 };

/// Computes one instruction for the lanes of `mask`. `at` are the offsets of the operands' columns
/// in `file`, results first.
using LaneFunction = void (*)(char* file, const uint32_t* at, Mask mask);

/// Moves one element a lane between a column and `host[lane] + offset`, for the lanes of `mask`.
using MoveFunction = void (*)(char* column, char* const* host, int64_t offset, Mask mask);

/// Of an instruction in memory: the value of an operand plus `offset`, or `offset` alone.
struct Address {
  bool registered = false;
  bool narrow = false; ///< its register has 32 bits
  uint8_t operand = 0; ///< number of the register among the instruction's operands
  int64_t offset = 0;
};

/// Instruction::number of a wait that leaves no copy, be it in a group or not.
constexpr int64_t allCopies = -1;

struct Instruction {
  static constexpr int maxOperands = 14;

  Kind kind = Kind::Lanes;
  Class counter = Class::Integer;
  Space space = Space::None;
  ShuffleMode shuffle = ShuffleMode::Up;
  VoteMode vote = VoteMode::All;
  bool guarded = false, guardNegated = false;
  bool transposes = false;          ///< ldmatrix.trans
  bool partial = false;             ///< a copy reads as many bytes as its last operand says
  uint8_t results = 0, sources = 0; ///< operands: results first
  uint8_t elements = 1, elementBytes = 0;
  uint32_t line = 0;
  uint32_t target = 0; ///< index of an instruction
  uint32_t guardAt = 0, guardIndex = 0;
  int64_t number = 0; ///< threads of a barrier; groups that a wait leaves on their way
  Address address{};
  Address source{}; ///< of a copy
  LaneFunction lanes = nullptr;
  MoveFunction move = nullptr;
  std::array<uint32_t, maxOperands> at{};    ///< offsets in the file
  std::array<uint32_t, maxOperands> index{}; ///< numbers of the registers

  int64_t bytes() const { return int64_t{elements} * elementBytes; }
};

struct Register {
  std::string name;
  uint32_t at = 0;
  Width width = Width::W32;
};

/// A value that stands in the file before the first instruction.
struct Preset {
  enum class Value : uint8_t {
    Immediate,
    TidX,
    TidY,
    TidZ,
    NtidX,
    NtidY,
    NtidZ,
    CtaidX,
    CtaidY,
    CtaidZ,
    NctaidX,
    NctaidY,
    NctaidZ,
    LaneId,
    WarpId,
    NwarpId,
    Undefined, ///< differs between orders
  };
  Value value = Value::Immediate;
  uint64_t bits = 0;
  uint32_t reg = 0; ///< number of the register that holds it
};

struct Parameter {
  std::string name;
  uint32_t offset = 0, bytes = 0;
};

/// What the `// titan:` line says of the bytes at a parameter's address.
struct Window {
  bool read = false, written = false;
  int64_t bytes = 0;
};

struct Entry {
  std::string name;
  uint32_t line = 0;
  std::vector<Parameter> parameters;
  uint32_t parameterBytes = 0;
  std::vector<Window> windows; ///< of the first parameters; empty without a `// titan:` line
  bool windowed = false;
  uint32_t maxThreads = 0;
  bool threadsRequired = false;
  uint32_t sharedBytes = 0;      ///< static, with what the module declares for all
  uint32_t dynamicAlignment = 0; ///< 0: there is no `.extern .shared`
  uint8_t sharedGranule = 16;    ///< the narrowest access of shared memory
  uint8_t globalGranule = 16;    ///< the narrowest access of global memory
  uint32_t fileBytes = 0;
  std::vector<Register> registers;
  std::vector<Preset> presets;
  std::vector<Instruction> code;
  std::vector<std::string> texts; ///< of the instructions, for messages
};

struct Module {
  std::vector<Entry> entries;
  std::vector<char> data; ///< initialised variables, at `moduleBase`

  const Entry* find(std::string_view name) const {
    for (const Entry& entry : entries)
      if (entry.name == name)
        return &entry;
    return nullptr;
  }
};

/// Where the module's own variables lie.
constexpr uint64_t moduleBase = 0x7c00'0000'0000'0000;
/// Generic addresses of shared memory.
constexpr uint64_t sharedGenericBase = 0x7b00'0000'0000'0000;
/// Shared memory starts here in its own space: an address of zero is a mistake.
constexpr uint64_t sharedBase = 1024;

} // namespace titan::ptx
