#include "runtime/device/cuda/testing/ptx/Fault.h"

namespace titan::ptx {

std::string coordinates(std::array<uint32_t, 3> at, const std::array<uint32_t, 3>& extents) {
  if (extents[1] == 1 && extents[2] == 1)
    return std::to_string(at[0]);
  return fmt::format("({}, {}, {})", at[0], at[1], at[2]);
}

std::array<uint32_t, 3> threadAt(uint32_t number, const std::array<uint32_t, 3>& block) {
  return {number % block[0], number / block[0] % block[1], number / block[0] / block[1]};
}

Error faultAt(const Place& place, const Instruction& instruction, int lane,
              const std::string& what) {
  const Launch& launch = *place.launch;
  size_t number = &instruction - place.entry->code.data();
  std::array<uint32_t, 3> thread = threadAt(place.warp * warpSize + lane, launch.block);
  return Error(ErrorCode::RunFailed,
               fmt::format("entry {}, block {}, thread {}, line {}, {}: {}", place.entry->name,
                           coordinates(place.block, launch.grid), coordinates(thread, launch.block),
                           instruction.line, place.entry->texts[number], what));
}

} // namespace titan::ptx
