// Loads and stores.
#include "runtime/device/cuda/testing/ptx/Request.h"

#include <algorithm>
#include <cstring>

namespace titan::ptx {
namespace {

/// Moves the elements between the registers and `hosts`.
void move(const Request& request, const Hosts& hosts) {
  const Instruction& instruction = request.instruction;
  int first = request.isLoad ? 0 : instruction.address.registered;
  for (int i = 0; i < instruction.elements; ++i)
    instruction.move(request.warp.file + instruction.at[first + i], hosts.data(),
                     int64_t{i} * instruction.elementBytes, request.mask);
}

bool sameValue(const Request& request, int lane, int other) {
  const Instruction& instruction = request.instruction;
  for (int i = 0; i < instruction.elements; ++i) {
    int slot = instruction.address.registered + i;
    const char* column = request.warp.file + instruction.at[slot];
    const std::vector<Register>& registers = request.machine.entry->registers;
    auto width = static_cast<size_t>(registers[instruction.index[slot]].width);
    if (std::memcmp(column + lane * width, column + other * width, instruction.elementBytes))
      return false;
  }
  return true;
}

/// Lanes that store to one address must agree. Accesses are aligned and of one width, so they lie
/// on each other or apart.
bool sameValues(Request& request) {
  const Addresses& at = request.at;
  std::array<int, warpSize> order;
  int count = 0;
  for (Mask left = request.mask; left; left &= left - 1)
    order[count++] = firstLane(left);
  auto before = [&](int a, int b) { return at[a] != at[b] ? at[a] < at[b] : a < b; };
  if (!std::is_sorted(order.begin(), order.begin() + count, before))
    std::sort(order.begin(), order.begin() + count, before);
  for (int i = 1; i < count; ++i)
    if (at[order[i]] == at[order[i - 1]] && !sameValue(request, order[i], order[i - 1]))
      return request.fail(order[i], fmt::format("writes 0x{:x}, where lane {} writes another value",
                                                at[order[i]], order[i - 1]));
  return true;
}

bool global(Request& request) {
  if (!request.touchGlobal())
    return false;
  if (!request.isLoad && request.shape != Shape::Consecutive && !sameValues(request))
    return false;
  move(request, request.hosts);
  return true;
}

/// Lane by lane: a lane sees what those before it wrote to the same place.
bool sharedStore(Request& request) {
  SharedMemory& memory = *request.machine.shared;
  std::array<std::array<char, 32>, warpSize> staged;
  Hosts hosts;
  for (int lane = 0; lane < warpSize; ++lane)
    hosts[lane] = staged[lane].data();
  move(request, hosts);
  std::string wrong;
  for (Mask left = request.mask; left; left &= left - 1) {
    int lane = firstLane(left);
    const uint64_t offset = request.sharedOffset(lane);
    if (!memory.write(offset, request.bytes, request.thread(lane), staged[lane].data(),
                      request.machine.requests, wrong))
      return request.fail(lane, wrong);
    std::memcpy(memory.at(offset), staged[lane].data(), request.bytes);
  }
  request.countShared(request.machine.counters.sharedStores);
  return true;
}

bool sharedLoad(Request& request) {
  if (!request.readShared(false))
    return false;
  for (int lane = 0; lane < warpSize; ++lane)
    request.hosts[lane] =
        request.machine.shared->at(request.mask >> lane & 1 ? request.sharedOffset(lane) : 0);
  move(request, request.hosts);
  request.countShared(request.machine.counters.sharedLoads);
  return true;
}

} // namespace

bool access(Machine& machine, Warp& warp, const Instruction& instruction, Mask mask) {
  Request request(machine, warp, instruction, mask, instruction.kind == Kind::Load,
                  instruction.bytes());
  if (instruction.space == Space::Parameter) {
    request.hosts.fill(machine.parameters.data() + instruction.address.offset);
    move(request, request.hosts);
    return true;
  }
  if (!request.locate(instruction.address, instruction.space))
    return false;
  if (request.space != Space::Shared)
    return global(request);
  return request.insideShared() && (request.isLoad ? sharedLoad(request) : sharedStore(request));
}

void endTrip(Machine& machine, Warp& warp) {
  machine.counters.globalLoads.tripSectors += warp.loads.take();
  machine.counters.globalStores.tripSectors += warp.stores.take();
}

} // namespace titan::ptx
