// Accesses of global memory: whose bytes they are, and what they cost.
#include "runtime/device/cuda/testing/ptx/Request.h"

#include <algorithm>
#include <cstring>

namespace titan::ptx {
namespace {

template <typename... Args>
char* refuse(std::string* wrong, fmt::format_string<Args...> format, Args&&... args) {
  if (wrong)
    *wrong = fmt::format(format, std::forward<Args>(args)...);
  return nullptr;
}

} // namespace

/// How many of `lanes`, from `lane` on, touch bytes one behind the other.
int Request::runFrom(int lane, Mask lanes) const {
  int count = 1;
  while (lane + count < warpSize && (lanes >> (lane + count) & 1) &&
         at[lane + count] == at[lane] + count * bytes)
    ++count;
  return count;
}

bool Request::touchGlobal(int64_t size) {
  if (size != bytes)
    shape = Shape::Scattered;
  bool done = false;
  int lane = firstLane(mask);
  char* host = nullptr;
  // What one check does not allow is looked at lane by lane, and found or refused there.
  if (shape == Shape::Consecutive && (host = range(at[0], warpSize * bytes, nullptr))) {
    for (int each = 0; each < warpSize; ++each)
      hosts[each] = host + each * bytes;
    done = true;
  } else if (shape == Shape::Equal && (host = range(at[lane], bytes, nullptr))) {
    hosts.fill(host);
    done = true;
  }
  std::string wrong;
  for (Mask left = done ? 0 : mask; left;) {
    lane = firstLane(left);
    int count = size == bytes ? runFrom(lane, left) : 1;
    host = count > 1 ? range(at[lane], count * bytes, nullptr) : nullptr;
    if (!host) {
      count = 1;
      host = range(at[lane], size, &wrong);
    }
    if (!host)
      return fail(lane, wrong);
    for (int each = 0; each < count; ++each, left &= left - 1)
      hosts[lane + each] = host + each * bytes;
  }
  count(isLoad ? machine.counters.globalLoads : machine.counters.globalStores, size);
  countSectors();
  return true;
}

/// The host's place of bytes that this instruction may touch; else null, and why in `wrong`.
char* Request::range(uint64_t address, int64_t size, std::string* wrong) {
  if (address >= moduleBase)
    return moduleData(address, size, wrong);
  if (space == Space::Constant)
    return refuse(wrong, "reads 0x{:x}, where no constant lies", address);
  if (!allocation_ || !allocation_->holds(address, size)) {
    allocation_ = machine.memory->find(address);
    if (!allocation_ || !allocation_->holds(address, size))
      return refuse(wrong, "{} {} bytes at 0x{:x}, which are in no allocation", verb(), size,
                    address);
  }
  if (space == Space::ReadOnly)
    return refuse(wrong,
                  "reads 0x{:x} as data that nobody writes: only variables of the module "
                  "are that",
                  address);
  if (machine.entry->windowed && !insideOperand(address, size)) {
    if (wrong)
      *wrong = outsideOperands(address, size);
    return nullptr;
  }
  int64_t offset = static_cast<int64_t>(address - allocation_->address);
  uint8_t* written = allocation_->written.get() + offset;
  if (!isLoad)
    std::memset(written, 0xff, size);
  else if (const void* first = std::memchr(written, 0, size))
    return refuse(wrong, "reads byte 0x{:x}{}, which was never written",
                  address + (static_cast<const uint8_t*>(first) - written),
                  inOperand(address + (static_cast<const uint8_t*>(first) - written)));
  if (!claim(address, size, wrong))
    return nullptr;
  return allocation_->bytes.get() + offset;
}

char* Request::moduleData(uint64_t address, int64_t size, std::string* wrong) {
  const std::vector<char>& data = machine.module->data;
  if (address - moduleBase + size > data.size())
    return refuse(wrong, "{} {} bytes at 0x{:x}, behind the variables of the module", verb(), size,
                  address);
  if (!isLoad)
    return refuse(wrong, "writes 0x{:x}, a variable of the module: these are only read", address);
  return const_cast<char*>(data.data()) + (address - moduleBase);
}

bool Request::insideOperand(uint64_t address, int64_t size) {
  for (const OperandBytes& operand : machine.operands)
    if ((isLoad ? operand.window.read : operand.window.written) && address >= operand.begin &&
        address + size <= operand.end)
      return true;
  return false;
}

/// ` (byte 12 of operand 1)`, or nothing.
std::string Request::inOperand(uint64_t address) const {
  for (size_t i = 0; i < machine.operands.size(); ++i)
    if (const OperandBytes& each = machine.operands[i]; address >= each.begin && address < each.end)
      return fmt::format(" (byte {} of operand {})", address - each.begin, i);
  return {};
}

std::string Request::outsideOperands(uint64_t address, int64_t size) const {
  std::string text = fmt::format("{} {} bytes at 0x{:x}", verb(), size, address);
  size_t nearest = machine.operands.size();
  for (size_t i = 0; i < machine.operands.size(); ++i) {
    const OperandBytes& each = machine.operands[i];
    if (address >= each.begin && address + size <= each.end)
      return fmt::format("{}, byte {} of operand {}, which is only {}", text, address - each.begin,
                         i, isLoad ? "written" : "read");
    if (address >= each.begin &&
        (nearest == machine.operands.size() || each.begin > machine.operands[nearest].begin))
      nearest = i;
  }
  if (nearest == machine.operands.size())
    return text + ", before all operands";
  const OperandBytes& each = machine.operands[nearest];
  return fmt::format("{}, byte {} of operand {}, which has {}", text, address - each.begin, nearest,
                     each.window.bytes);
}

bool Request::claim(uint64_t address, int64_t size, std::string* wrong) {
  Owners::Conflict conflict{};
  if (!machine.owners ||
      machine.owners->touch(address, size, machine.blockNumber, !isLoad, conflict))
    return true;
  std::string other =
      conflict.block == Owners::many ? "several blocks" : fmt::format("block {}", conflict.block);
  refuse(wrong, "{} byte 0x{:x}{}, which {} {} in this launch", verb(), conflict.address,
         inOperand(conflict.address), other, conflict.wrote ? "wrote" : "read");
  return false;
}

void Request::countSectors() {
  Traffic& traffic = isLoad ? machine.counters.globalLoads : machine.counters.globalStores;
  SectorSet& trip = isLoad ? warp.loads : warp.stores;
  auto add = [&](uint64_t first, uint64_t last) {
    traffic.sectors += static_cast<int64_t>(last - first + 1);
    trip.add(first, last);
  };
  uint64_t first = at[firstLane(mask)] / 32;
  if (shape == Shape::Equal)
    return add(first, first);
  if (shape == Shape::Consecutive)
    return add(first, (at[31] + bytes - 1) / 32);
  Addresses sectors;
  size_t count = 0;
  for (Mask left = mask; left; left &= left - 1) {
    uint64_t sector = at[firstLane(left)] / 32;
    if (count == 0 || sectors[count - 1] != sector)
      sectors[count++] = sector;
  }
  if (!std::is_sorted(sectors.begin(), sectors.begin() + count)) {
    std::sort(sectors.begin(), sectors.begin() + count);
    count = std::unique(sectors.begin(), sectors.begin() + count) - sectors.begin();
  }
  for (size_t i = 0; i < count; ++i)
    add(sectors[i], sectors[i]);
}

} // namespace titan::ptx
