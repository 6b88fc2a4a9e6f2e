// One launch while it runs: what its blocks, its warps and their accesses share.
#pragma once

#include "runtime/device/cuda/testing/ptx/AsyncCopies.h"
#include "runtime/device/cuda/testing/ptx/Fault.h"
#include "runtime/device/cuda/testing/ptx/Owners.h"
#include "runtime/device/cuda/testing/ptx/Sectors.h"
#include "runtime/device/cuda/testing/ptx/SharedMemory.h"

namespace titan::ptx {

/// Lanes of a warp that are at the same instruction.
struct Group {
  uint32_t pc = 0;
  Mask mask = 0;
  bool parked = false; ///< waits at its instruction for other lanes
};

struct Warp {
  uint32_t number = 0;
  Mask started = 0; ///< lanes that are threads of the block
  Mask live = 0;    ///< of these, those that have not exited
  std::vector<Group> groups;
  std::unique_ptr<char[]> memory;
  char* file = nullptr;              ///< 64-byte aligned, in `memory`
  std::vector<Mask> written;         ///< by register: lanes that have a value
  int64_t budget = 0;                ///< instructions that are left
  std::optional<uint32_t> atBarrier; ///< its number
  SectorSet loads, stores;
  AsyncCopies copies;
};

/// Bytes that a parameter points to.
struct OperandBytes {
  uint64_t begin = 0, end = 0;
  Window window;
};

struct Machine {
  const Module* module = nullptr;
  const Entry* entry = nullptr;
  const Launch* launch = nullptr;
  Memory* memory = nullptr;
  Place place;
  uint32_t blockNumber = 0;
  std::vector<char> parameters;
  std::vector<OperandBytes> operands;
  std::optional<Owners> owners; ///< none where the launch has one block
  std::optional<SharedMemory> shared;
  uint64_t requests = 0, garbage = 0;

  /// For values that do not matter: they differ between orders.
  uint64_t nextGarbage() {
    garbage = garbage * 6364136223846793005u + 1442695040888963407u;
    return garbage >> 32;
  }
  std::array<int64_t, classCount> classes{}; ///< lane instructions by Class
  Counters counters;
  std::optional<Error> fault;

  /// Notes what is wrong; always false.
  bool fail(const Instruction& instruction, int lane, const std::string& what) {
    fault = faultAt(place, instruction, lane, what);
    return false;
  }
};

inline int firstLane(Mask mask) { return __builtin_ctz(mask); }
inline int lanesOf(Mask mask) { return mask == ~Mask{0} ? warpSize : __builtin_popcount(mask); }

/// Runs until the warp is at a barrier of its block or has exited. False: a fault.
bool runWarp(Machine& machine, Warp& warp);

/// A load or store of the lanes of `mask`. False: a fault.
bool access(Machine& machine, Warp& warp, const Instruction& instruction, Mask mask);

/// A cp.async of the lanes of `mask`: checks it, and notes what is to come. False: a fault.
bool copyAsync(Machine& machine, Warp& warp, const Instruction& instruction, Mask mask);

/// ldmatrix and mma.m16n8k16, of all lanes. False: a fault.
bool loadMatrix(Machine& machine, Warp& warp, const Instruction& instruction);
void multiply(Warp& warp, const Instruction& instruction);

/// Counts what the warp touched since its last backward branch.
void endTrip(Machine& machine, Warp& warp);

/// shfl, vote and activemask, once all lanes are there.
bool shuffle(Machine& machine, Warp& warp, const Instruction& instruction, Mask mask);
void vote(Warp& warp, const Instruction& instruction, Mask mask);

} // namespace titan::ptx
