// What the lanes of one instruction touch in memory: where, and how many bytes each. The checks
// that loads, stores, ldmatrix and cp.async have in common.
#pragma once

#include "runtime/device/cuda/testing/ptx/Machine.h"

namespace titan::ptx {

using Addresses = std::array<uint64_t, warpSize>;
/// Places on the host, lane by lane.
using Hosts = std::array<char*, warpSize>;

/// Where the addresses of a request lie to each other.
enum class Shape : uint8_t { Consecutive, Equal, Scattered };

class Request {
public:
  /// `bytes` of each lane of `mask`, a power of two.
  Request(Machine& machine, Warp& warp, const Instruction& instruction, Mask mask, bool isLoad,
          int64_t bytes)
      : machine(machine), warp(warp), instruction(instruction), mask(mask), bytes(bytes),
        isLoad(isLoad) {}

  /// Computes `at` and `shape`. False: an address is not aligned.
  bool locate(const Address& address, Space of);
  /// Checks an access of global memory, notes and counts it, and finds `hosts`.
  bool touchGlobal() { return touchGlobal(bytes); }
  /// The same of the first `size` bytes at each address.
  bool touchGlobal(int64_t size);
  /// Whether all lanes lie inside the block's shared memory.
  bool insideShared();
  /// Counts an access of shared memory.
  void countShared(Traffic& traffic);
  /// Notes that lanes read shared memory; `asWarp`: each word is for several lanes.
  bool readShared(bool asWarp);

  bool fail(int lane, const std::string& what) { return machine.fail(instruction, lane, what); }
  const char* verb() const { return isLoad ? "reads" : "writes"; }
  uint64_t sharedOffset(int lane) const { return at[lane] - sharedBase; }
  uint32_t thread(int lane) const { return warp.number * warpSize + static_cast<uint32_t>(lane); }

  Machine& machine;
  Warp& warp;
  const Instruction& instruction;
  const Mask mask;
  const int64_t bytes;
  const bool isLoad;
  Space space = Space::None; ///< Generic is resolved
  Shape shape = Shape::Scattered;
  Addresses at;
  Hosts hosts;

private:
  void computeAddresses(const Address& address);
  bool resolveGeneric();
  /// Finds `shape`. False: some lane's address is not aligned.
  bool look();
  bool misaligned();

  int runFrom(int lane, Mask lanes) const;
  char* range(uint64_t address, int64_t size, std::string* wrong);
  char* moduleData(uint64_t address, int64_t size, std::string* wrong);
  bool insideOperand(uint64_t address, int64_t size);
  std::string inOperand(uint64_t address) const;
  std::string outsideOperands(uint64_t address, int64_t size) const;
  bool claim(uint64_t address, int64_t size, std::string* wrong);
  void count(Traffic& traffic, int64_t size) const;
  void countSectors();
  /// Lanes of each address that is read: two, or one and -1.
  struct Readers {
    int count = 0;
    std::array<int8_t, warpSize> first, second;
  };
  Readers readersByAddress() const;
  int64_t bankConflicts() const;
  bool fillsBanks(int shift, int units) const;
  int64_t passesOf(Mask lanes, int shift, int units) const;

  const Memory::Allocation* allocation_ = nullptr;
};

} // namespace titan::ptx
