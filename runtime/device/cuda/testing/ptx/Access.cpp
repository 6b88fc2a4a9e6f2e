// Loads and stores, and everything that is checked about them.
#include "runtime/device/cuda/testing/ptx/Machine.h"

#include <algorithm>
#include <cstring>

namespace titan::ptx {
namespace {

using Addresses = std::array<uint64_t, warpSize>;
using Hosts = std::array<char*, warpSize>;

/// Where the addresses of a request lie to each other.
enum class Shape { Consecutive, Equal, Scattered };

class Access {
public:
  Access(Machine& machine, Warp& warp, const Instruction& instruction, Mask mask)
      : machine_(machine), warp_(warp), instruction_(instruction), mask_(mask),
        isLoad_(instruction.kind == Kind::Load), bytes_(instruction.bytes()),
        space_(instruction.space) {}

  bool run() {
    if (space_ == Space::Parameter)
      return parameter();
    addresses();
    if (!resolveGeneric() || !aligned())
      return false;
    shape_ = shapeOf();
    ++machine_.requests;
    return space_ == Space::Shared ? shared() : global();
  }

private:
  bool fail(int lane, const std::string& what) { return machine_.fail(instruction_, lane, what); }
  const char* verb() const { return isLoad_ ? "reads" : "writes"; }

  bool parameter() {
    hosts_.fill(machine_.parameters.data() + instruction_.offset);
    move();
    return true;
  }

  void addresses() {
    uint64_t offset = instruction_.offset;
    int slot = instruction_.results;
    const char* column = warp_.file + instruction_.at[slot];
    if (!instruction_.addressed)
      at_.fill(offset);
    else if (instruction_.narrowAddress)
      for (int lane = 0; lane < warpSize; ++lane)
        at_[lane] = reinterpret_cast<const uint32_t*>(column)[lane] + offset;
    else
      for (int lane = 0; lane < warpSize; ++lane)
        at_[lane] = reinterpret_cast<const uint64_t*>(column)[lane] + offset;
  }

  static bool isSharedWindow(uint64_t address) {
    return address >= sharedGenericBase && address - sharedGenericBase < uint64_t{1} << 32;
  }

  /// A generic address is one of shared memory by its window, else one of global memory.
  bool resolveGeneric() {
    if (space_ != Space::Generic)
      return true;
    bool isShared = isSharedWindow(at_[firstLane(mask_)]);
    for (Mask left = mask_; left; left &= left - 1) {
      uint64_t& address = at_[firstLane(left)];
      if (isSharedWindow(address) != isShared)
        return fail(firstLane(left), "some lanes address shared memory and some global");
      address -= isShared ? sharedGenericBase : 0;
    }
    space_ = isShared ? Space::Shared : Space::Global;
    return true;
  }

  bool aligned() {
    uint64_t low = 0;
    for (int lane = 0; lane < warpSize; ++lane)
      low |= mask_ >> lane & 1 ? at_[lane] : 0;
    if ((low & (bytes_ - 1)) == 0)
      return true;
    for (Mask left = mask_;; left &= left - 1)
      if (uint64_t address = at_[firstLane(left)]; address & (bytes_ - 1))
        return fail(firstLane(left),
                    fmt::format("{} {} bytes at 0x{:x}, which is not a multiple of "
                                "{}",
                                verb(), bytes_, address, bytes_));
  }

  Shape shapeOf() const {
    uint64_t first = at_[firstLane(mask_)], different = 0, broken = mask_ != ~Mask{0};
    for (int lane = 0; lane < warpSize; ++lane) {
      different |= mask_ >> lane & 1 ? at_[lane] ^ first : 0;
      broken |= at_[lane] ^ (at_[0] + lane * bytes_);
    }
    return different == 0 ? Shape::Equal : broken == 0 ? Shape::Consecutive : Shape::Scattered;
  }

  // Global memory.

  bool global() {
    bool done = false;
    int lane = firstLane(mask_);
    char* host = nullptr;
    // What one check does not allow is looked at lane by lane, and found or refused there.
    if (shape_ == Shape::Consecutive && (host = range(at_[0], warpSize * bytes_, nullptr))) {
      for (int each = 0; each < warpSize; ++each)
        hosts_[each] = host + each * bytes_;
      done = true;
    } else if (shape_ == Shape::Equal && (host = range(at_[lane], bytes_, nullptr))) {
      hosts_.fill(host);
      done = true;
    }
    for (Mask left = done ? 0 : mask_; left; left &= left - 1) {
      lane = firstLane(left);
      std::string wrong;
      hosts_[lane] = range(at_[lane], bytes_, &wrong);
      if (!hosts_[lane])
        return fail(lane, wrong);
    }
    if (!isLoad_ && shape_ != Shape::Consecutive && !sameValues())
      return false;
    move();
    count(isLoad_ ? machine_.counters.globalLoads : machine_.counters.globalStores);
    countSectors();
    return true;
  }

  /// Lanes that store to one address must agree. Accesses are aligned and of one width, so they lie
  /// on each other or apart.
  bool sameValues() {
    std::array<int, warpSize> order;
    int count = 0;
    for (Mask left = mask_; left; left &= left - 1)
      order[count++] = firstLane(left);
    auto before = [&](int a, int b) { return at_[a] != at_[b] ? at_[a] < at_[b] : a < b; };
    if (!std::is_sorted(order.begin(), order.begin() + count, before))
      std::sort(order.begin(), order.begin() + count, before);
    for (int i = 1; i < count; ++i)
      if (at_[order[i]] == at_[order[i - 1]] && !sameValue(order[i], order[i - 1]))
        return fail(order[i], fmt::format("writes 0x{:x}, where lane {} writes another value",
                                          at_[order[i]], order[i - 1]));
    return true;
  }

  bool sameValue(int lane, int other) const {
    for (int i = 0; i < instruction_.elements; ++i) {
      int slot = instruction_.results + instruction_.addressed + i;
      const char* column = warp_.file + instruction_.at[slot];
      auto width = static_cast<size_t>(machine_.entry->registers[instruction_.index[slot]].width);
      if (std::memcmp(column + lane * width, column + other * width, instruction_.elementBytes))
        return false;
    }
    return true;
  }

  /// The host's place of bytes that this instruction may touch; else null, and why in `wrong`.
  char* range(uint64_t address, int64_t size, std::string* wrong) {
    if (address >= moduleBase)
      return moduleData(address, size, wrong);
    if (space_ == Space::Constant)
      return refuse(wrong, "reads 0x{:x}, where no constant lies", address);
    if (!allocation_ || !allocation_->holds(address, size)) {
      allocation_ = machine_.memory->find(address);
      if (!allocation_ || !allocation_->holds(address, size))
        return refuse(wrong, "{} {} bytes at 0x{:x}, which are in no allocation", verb(), size,
                      address);
    }
    if (space_ == Space::ReadOnly)
      return refuse(wrong,
                    "reads 0x{:x} as data that nobody writes: only variables of the module "
                    "are that",
                    address);
    if (machine_.entry->windowed && !insideOperand(address, size)) {
      if (wrong)
        *wrong = outsideOperands(address, size);
      return nullptr;
    }
    int64_t offset = static_cast<int64_t>(address - allocation_->address);
    uint8_t* written = allocation_->written.get() + offset;
    if (!isLoad_)
      std::memset(written, 0xff, size);
    else if (const void* first = std::memchr(written, 0, size))
      return refuse(wrong, "reads byte 0x{:x}{}, which was never written",
                    address + (static_cast<const uint8_t*>(first) - written),
                    inOperand(address + (static_cast<const uint8_t*>(first) - written)));
    if (!claim(address, size, wrong))
      return nullptr;
    return allocation_->bytes.get() + offset;
  }

  template <typename... Args>
  char* refuse(std::string* wrong, fmt::format_string<Args...> format, Args&&... args) {
    if (wrong)
      *wrong = fmt::format(format, std::forward<Args>(args)...);
    return nullptr;
  }

  char* moduleData(uint64_t address, int64_t size, std::string* wrong) {
    const std::vector<char>& data = machine_.module->data;
    if (address - moduleBase + size > data.size())
      return refuse(wrong, "{} {} bytes at 0x{:x}, behind the variables of the module", verb(),
                    size, address);
    if (!isLoad_)
      return refuse(wrong, "writes 0x{:x}, a variable of the module: these are only read", address);
    return const_cast<char*>(data.data()) + (address - moduleBase);
  }

  bool insideOperand(uint64_t address, int64_t size) {
    for (const OperandBytes& operand : machine_.operands)
      if ((isLoad_ ? operand.window.read : operand.window.written) && address >= operand.begin &&
          address + size <= operand.end)
        return true;
    return false;
  }

  /// ` (byte 12 of operand 1)`, or nothing.
  std::string inOperand(uint64_t address) const {
    for (size_t i = 0; i < machine_.operands.size(); ++i)
      if (const OperandBytes& each = machine_.operands[i];
          address >= each.begin && address < each.end)
        return fmt::format(" (byte {} of operand {})", address - each.begin, i);
    return {};
  }

  std::string outsideOperands(uint64_t address, int64_t size) const {
    std::string text = fmt::format("{} {} bytes at 0x{:x}", verb(), size, address);
    size_t nearest = machine_.operands.size();
    for (size_t i = 0; i < machine_.operands.size(); ++i) {
      const OperandBytes& each = machine_.operands[i];
      if (address >= each.begin && address + size <= each.end)
        return fmt::format("{}, byte {} of operand {}, which is only {}", text,
                           address - each.begin, i, isLoad_ ? "written" : "read");
      if (address >= each.begin &&
          (nearest == machine_.operands.size() || each.begin > machine_.operands[nearest].begin))
        nearest = i;
    }
    if (nearest == machine_.operands.size())
      return text + ", before all operands";
    const OperandBytes& each = machine_.operands[nearest];
    return fmt::format("{}, byte {} of operand {}, which has {}", text, address - each.begin,
                       nearest, each.window.bytes);
  }

  bool claim(uint64_t address, int64_t size, std::string* wrong) {
    Owners::Conflict conflict{};
    if (!machine_.owners ||
        machine_.owners->touch(address, size, machine_.blockNumber, !isLoad_, conflict))
      return true;
    std::string other =
        conflict.block == Owners::many ? "several blocks" : fmt::format("block {}", conflict.block);
    refuse(wrong, "{} byte 0x{:x}{}, which {} {} in this launch", verb(), conflict.address,
           inOperand(conflict.address), other, conflict.wrote ? "wrote" : "read");
    return false;
  }

  // Shared memory.

  bool shared() {
    SharedMemory& memory = *machine_.shared;
    if (!insideShared(memory))
      return false;
    for (int lane = 0; lane < warpSize; ++lane)
      hosts_[lane] = memory.at(mask_ >> lane & 1 ? at_[lane] - sharedBase : 0);
    if (!(isLoad_ ? sharedLoad(memory) : sharedStore(memory)))
      return false;
    Traffic& traffic = isLoad_ ? machine_.counters.sharedLoads : machine_.counters.sharedStores;
    count(traffic);
    if (shape_ == Shape::Scattered)
      traffic.bankConflicts += bankConflicts();
    return true;
  }

  bool insideShared(const SharedMemory& memory) {
    auto last = int64_t{memory.size()} - bytes_;
    int64_t outside = 0; // negative where a lane lies before the first byte or behind the last
    for (int lane = 0; lane < warpSize; ++lane) {
      auto offset = static_cast<int64_t>(at_[lane] - sharedBase);
      outside |= mask_ >> lane & 1 ? offset | (last - offset) : 0;
    }
    if (outside >= 0)
      return true;
    for (Mask left = mask_;; left &= left - 1) {
      uint64_t address = at_[firstLane(left)];
      auto offset = static_cast<int64_t>(address - sharedBase);
      if (offset < 0 || offset > last)
        return fail(firstLane(left),
                    fmt::format("{} {} bytes at shared address {}: the block's {} bytes start at "
                                "{}",
                                verb(), bytes_, address, memory.size(), sharedBase));
    }
  }

  bool sharedLoad(SharedMemory& memory) {
    std::string wrong;
    uint32_t thread = warp_.number * warpSize;
    uint64_t previous = 0, beforeIt = 0;
    for (Mask left = mask_; left; left &= left - 1) {
      int lane = firstLane(left);
      uint64_t address = at_[lane];
      // After two lanes of a warp a third changes nothing.
      bool known = address == previous && address == beforeIt;
      if (!known && !memory.read(address - sharedBase, bytes_, thread + lane, wrong))
        return fail(lane, wrong);
      beforeIt = previous;
      previous = address;
    }
    move();
    return true;
  }

  /// Lane by lane: a lane sees what those before it wrote to the same place.
  bool sharedStore(SharedMemory& memory) {
    std::array<std::array<char, 32>, warpSize> staged;
    Hosts places = hosts_;
    for (int lane = 0; lane < warpSize; ++lane)
      hosts_[lane] = staged[lane].data();
    move();
    std::string wrong;
    uint32_t thread = warp_.number * warpSize;
    for (Mask left = mask_; left; left &= left - 1) {
      int lane = firstLane(left);
      if (!memory.write(at_[lane] - sharedBase, bytes_, thread + lane, staged[lane].data(),
                        machine_.requests, wrong))
        return fail(lane, wrong);
      std::memcpy(places[lane], staged[lane].data(), bytes_);
    }
    return true;
  }

  /// A pass serves 32 words of 4 bytes in 32 banks; equal words are one. Accesses of 8 and 16 bytes
  /// go by halves and quarters of a warp.
  int64_t bankConflicts() const { return oneWordABank() ? 0 : countConflicts(); }

  bool oneWordABank() const {
    if (bytes_ > 4)
      return false;
    std::array<uint64_t, 32> held{};
    for (Mask left = mask_; left; left &= left - 1) {
      uint64_t word = at_[firstLane(left)] / 4; // never 0: addresses start at sharedBase
      uint64_t& bank = held[word % 32];
      if (bank != 0 && bank != word)
        return false;
      bank = word;
    }
    return true;
  }

  int64_t countConflicts() const {
    int together = bytes_ <= 4 ? warpSize : warpSize * 4 / static_cast<int>(bytes_);
    int64_t conflicts = 0;
    for (int first = 0; first < warpSize; first += together) {
      std::array<uint64_t, 4 * warpSize> words;
      size_t count = 0;
      for (int lane = first; lane < first + together; ++lane)
        for (int64_t byte = 0; (mask_ >> lane & 1) && byte < bytes_; byte += 4)
          words[count++] = (at_[lane] + byte) / 4;
      std::sort(words.begin(), words.begin() + count);
      count = std::unique(words.begin(), words.begin() + count) - words.begin();
      std::array<int, 32> passes{};
      for (size_t i = 0; i < count; ++i)
        ++passes[words[i] % 32];
      conflicts += std::max(0, *std::max_element(passes.begin(), passes.end()) - 1);
    }
    return conflicts;
  }

  // Both.

  void move() {
    int first = isLoad_ ? 0 : instruction_.addressed;
    for (int i = 0; i < instruction_.elements; ++i)
      instruction_.move(warp_.file + instruction_.at[first + i], hosts_.data(),
                        int64_t{i} * instruction_.elementBytes, mask_);
  }

  void count(Traffic& traffic) {
    ++traffic.requests;
    traffic.bytes += bytes_ * lanesOf(mask_);
    ++traffic.byWidth[std::min(__builtin_ctzll(bytes_), 4)];
  }

  void countSectors() {
    Traffic& traffic = isLoad_ ? machine_.counters.globalLoads : machine_.counters.globalStores;
    SectorSet& trip = isLoad_ ? warp_.loads : warp_.stores;
    auto add = [&](uint64_t first, uint64_t last) {
      traffic.sectors += static_cast<int64_t>(last - first + 1);
      trip.add(first, last);
    };
    uint64_t first = at_[firstLane(mask_)] / 32;
    if (shape_ == Shape::Equal)
      return add(first, first);
    if (shape_ == Shape::Consecutive)
      return add(first, (at_[31] + bytes_ - 1) / 32);
    Addresses sectors;
    size_t count = 0;
    for (Mask left = mask_; left; left &= left - 1) {
      uint64_t sector = at_[firstLane(left)] / 32;
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

  Machine& machine_;
  Warp& warp_;
  const Instruction& instruction_;
  const Mask mask_;
  const bool isLoad_;
  const int64_t bytes_;
  Space space_;
  Shape shape_ = Shape::Scattered;
  const Memory::Allocation* allocation_ = nullptr;
  Addresses at_;
  Hosts hosts_;
};

} // namespace

bool access(Machine& machine, Warp& warp, const Instruction& instruction, Mask mask) {
  return Access(machine, warp, instruction, mask).run();
}

void endTrip(Machine& machine, Warp& warp) {
  machine.counters.globalLoads.tripSectors += warp.loads.take();
  machine.counters.globalStores.tripSectors += warp.stores.take();
}

} // namespace titan::ptx
