// Where a launch went wrong, in words.
#pragma once

#include "runtime/device/cuda/testing/ptx/Module.h"

namespace titan::ptx {

/// The block and the warp that run, as far as messages need them.
struct Place {
  const Entry* entry = nullptr;
  const Launch* launch = nullptr;
  std::array<uint32_t, 3> block{};
  uint32_t warp = 0;
};

/// x, or (x, y, z) where grid or block have y or z.
std::string coordinates(std::array<uint32_t, 3> at, const std::array<uint32_t, 3>& extents);

/// The place of a thread by its number in the block.
std::array<uint32_t, 3> threadAt(uint32_t number, const std::array<uint32_t, 3>& block);

/// `entry k, block 3, thread 65, line 42, ld.global.f32: ` and what is wrong.
Error faultAt(const Place& place, const Instruction& instruction, int lane,
              const std::string& what);

} // namespace titan::ptx
