// PTX without a card: a parser, and an interpreter that checks what it runs.
//
//   std::shared_ptr<const ptx::Module> module = TITAN_TRY(ptx::parse(text));
//   ptx::Memory memory;
//   uint64_t x = TITAN_TRY(memory.allocate(4096));
//   memory.markWritten(x, 4096);                       // after filling memory.bytes(x, 4096)
//   ptx::Counters counters = TITAN_TRY(ptx::run(*module, {.entry = "k", .arguments = {x}}, memory));
//
// Nothing here may be called by two threads at once on the same Memory.
#pragma once

#include "runtime/program/Error.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace titan::ptx {

/// Device memory: allocations at addresses that no host pointer can have (non-canonical, so a stray
/// dereference faults), with a shadow that knows which bytes were written. Addresses are never
/// used again, and between two allocations lies a gap: what is freed or overrun is found.
class Memory {
public:
  /// One allocation: its bytes on the host, and for each of them 0xff where it was written, else 0.
  struct Allocation {
    uint64_t address = 0;
    int64_t size = 0;
    std::unique_ptr<char, void (*)(void*)> bytes{nullptr, nullptr};
    std::unique_ptr<uint8_t, void (*)(void*)> written{nullptr, nullptr};

    bool holds(uint64_t at, int64_t count) const {
      return at >= address && count >= 0 && count <= size &&
             at - address <= static_cast<uint64_t>(size - count);
    }
  };

  /// An address that is a multiple of 256; the contents are unwritten. Zero bytes are one byte.
  Result<uint64_t> allocate(int64_t bytes);
  /// Host memory becomes an allocation at its own address, with unwritten contents. It outlives it.
  void map(std::span<char> host);
  /// False: no allocation starts there.
  bool free(uint64_t address);
  /// The bytes on the host; empty unless they lie inside one allocation.
  std::span<char> bytes(uint64_t address, int64_t size);
  /// After a copy or a fill by the host. What lies outside of any allocation is passed over.
  void markWritten(uint64_t address, int64_t size);
  /// The address of the first of these bytes that was never written; none where all were.
  std::optional<uint64_t> firstUnwritten(uint64_t address, int64_t size) const;
  /// The allocation in which `address` lies, or nullptr.
  const Allocation* find(uint64_t address) const;

private:
  std::map<uint64_t, Allocation> allocations_;
  uint64_t next_ = firstAddress;

  static constexpr uint64_t firstAddress = 0x7a00'0000'0000'0000;
};

/// A whole PTX text, decoded once.
struct Module;

/// Refuses, with its line, what is not PTX or not an instruction that the interpreter knows.
Result<std::shared_ptr<const Module>> parse(std::string_view text);

/// The entry points, in the order of the text.
std::vector<std::string> entries(const Module& module);

/// What the text says about how an entry is to be launched.
struct EntryInfo {
  int64_t parameters = 0;
  uint32_t maxThreads = 0;      ///< of `.maxntid` or `.reqntid`; 0 where there is neither
  bool threadsRequired = false; ///< it was `.reqntid`: a block has exactly so many
  uint32_t sharedBytes = 0;     ///< static
};

/// None: there is no such entry.
std::optional<EntryInfo> info(const Module& module, std::string_view entry);

/// Of the blocks of a grid, and of the warps of a block. A correct kernel gives the same bits in
/// each: no order is promised on a card.
enum class Order { Ascending, Descending, Random };

struct Launch {
  std::string entry{};
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  uint32_t sharedBytes = 0; ///< dynamic
  std::vector<uint64_t> arguments{};
  /// The only blocks that run, by number, x running fastest; empty: all.
  std::vector<uint32_t> blocks{};
  Order order = Order::Ascending;
  uint64_t seed = 0; ///< of Order::Random
  /// Instructions that a warp may execute; one that needs more is taken for an endless loop.
  int64_t warpBudget = int64_t{1} << 26;
};

/// Of one direction, in one kind of memory. A request is one instruction of one warp.
struct Traffic {
  int64_t requests = 0;
  int64_t bytes = 0; ///< of all active lanes, equal addresses counted each
  /// Global memory: distinct aligned pieces of 32 bytes, request by request.
  int64_t sectors = 0;
  /// The same, but a piece counts once between two backward branches of a warp: what a cache does
  /// for a chunk that is read by two instructions.
  int64_t tripSectors = 0;
  /// Shared memory: passes over the banks beyond those that the bytes need.
  int64_t bankConflicts = 0;
  /// Requests by the bytes that a lane moves: 1, 2, 4, 8, 16.
  std::array<int64_t, 5> byWidth{};
};

/// What a launch did. Instructions are counted by lane: a warp of 32 active lanes counts 32.
struct Counters {
  int64_t float32 = 0;    ///< arithmetic of f32
  int64_t float64 = 0;    ///< arithmetic of f64
  int64_t integer = 0;    ///< arithmetic, shifts and bits
  int64_t conversion = 0; ///< cvt, cvta
  int64_t move = 0;       ///< mov, selp, slct
  int64_t predicate = 0;  ///< setp, and arithmetic of predicates
  int64_t memory = 0;     ///< ld, st, ldmatrix, cp.async; not of parameters
  int64_t parameter = 0;  ///< ld.param
  int64_t control = 0;    ///< bra, ret, exit
  int64_t exchange = 0;   ///< shfl, vote, match, bar, fences, waits for copies
  int64_t matrix = 0;     ///< mma

  Traffic globalLoads, globalStores, sharedLoads, sharedStores;
  int64_t barriers = 0;         ///< of blocks: each counts once a block
  int64_t warpInstructions = 0; ///< whatever the number of active lanes
  int64_t divergences = 0;      ///< branches on which the lanes of a warp parted

  int64_t laneInstructions() const {
    return float32 + float64 + integer + conversion + move + predicate + memory + parameter +
           control + exchange + matrix;
  }
};

/// Runs to the end, or an error that names entry, block, thread, PTX line and what is wrong.
Result<Counters> run(const Module& module, const Launch& launch, Memory& memory);

} // namespace titan::ptx
