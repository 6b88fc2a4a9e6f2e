// A launch: what is asked of it, its blocks in order, and the warps of a block between barriers.
#include "runtime/device/cuda/testing/ptx/Machine.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace titan::ptx {
namespace {

/// The most that a block of an sm_90 has.
constexpr uint32_t mostShared = 227 * 1024;
constexpr uint64_t mostThreads = 1024;
/// Along x; numbers of blocks have 32 bits here.
constexpr uint64_t mostBlocks = (uint64_t{1} << 31) - 1;

/// The same on every machine, unlike those of <random> behind a distribution.
class Shuffler {
public:
  explicit Shuffler(uint64_t seed) : state_(seed * 2 + 1) {}

  template <typename T> void shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i)
      std::swap(values[i - 1], values[next() % i]);
  }

private:
  uint64_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return state_ >> 33;
  }
  uint64_t state_;
};

class Launcher {
public:
  Launcher(const Module& module, const Launch& launch, Memory& memory)
      : launch_(launch), shuffler_(launch.seed) {
    machine_.module = &module;
    machine_.launch = &launch;
    machine_.memory = &memory;
    machine_.entry = module.find(launch.entry);
    machine_.garbage = launch.seed + static_cast<uint64_t>(launch.order);
  }

  Result<Counters> run() {
    TITAN_TRY(check());
    prepare();
    for (uint32_t block : arranged(chosenBlocks()))
      if (!runBlock(block))
        return *std::move(machine_.fault);
    return counters();
  }

private:
  Status check() {
    if (!machine_.entry)
      return Error::badInput("the module has no entry {}", launch_.entry);
    const Entry& entry = *machine_.entry;
    if (launch_.arguments.size() != entry.parameters.size())
      return Error::badInput("entry {} has {} parameters, not {}", entry.name,
                             entry.parameters.size(), launch_.arguments.size());
    uint64_t threads = 1, blocks = 1;
    for (int i = 0; i < 3; ++i) {
      threads *= std::min<uint64_t>(launch_.block[i], mostThreads + 1);
      blocks = std::min(blocks * launch_.grid[i], mostBlocks + 1);
    }
    if (threads == 0 || threads > mostThreads || blocks == 0 || blocks > mostBlocks)
      return Error::badInput("entry {}: no launch has a grid of {} x {} x {} blocks of "
                             "{} x {} x {} threads",
                             entry.name, launch_.grid[0], launch_.grid[1], launch_.grid[2],
                             launch_.block[0], launch_.block[1], launch_.block[2]);
    for (uint32_t block : launch_.blocks)
      if (block >= blocks)
        return Error::badInput("entry {}: no block {} in a grid of {}", entry.name, block, blocks);
    threads_ = static_cast<uint32_t>(threads);
    blocks_ = static_cast<uint32_t>(blocks);
    if (entry.maxThreads &&
        (entry.threadsRequired ? threads != entry.maxThreads : threads > entry.maxThreads))
      return Error::badInput("entry {} is made for {} {} threads a block, not {}", entry.name,
                             entry.threadsRequired ? "exactly" : "at most", entry.maxThreads,
                             threads);
    if (uint64_t{entry.sharedBytes} + launch_.sharedBytes > mostShared)
      return Error::badInput("entry {} wants {} bytes of shared memory, a block has at most {}",
                             entry.name, uint64_t{entry.sharedBytes} + launch_.sharedBytes,
                             mostShared);
    return {};
  }

  void prepare() {
    const Entry& entry = *machine_.entry;
    machine_.place = {.entry = &entry, .launch = &launch_};
    machine_.parameters.resize(entry.parameterBytes);
    for (size_t i = 0; i < entry.parameters.size(); ++i)
      std::memcpy(machine_.parameters.data() + entry.parameters[i].offset, &launch_.arguments[i],
                  entry.parameters[i].bytes);
    for (size_t i = 0; i < entry.windows.size(); ++i)
      machine_.operands.push_back({launch_.arguments[i],
                                   launch_.arguments[i] + uint64_t(entry.windows[i].bytes),
                                   entry.windows[i]});
    if (blocks_ > 1)
      machine_.owners.emplace(entry.globalGranule);
    uint32_t shared = entry.sharedBytes + launch_.sharedBytes;
    uint32_t warps = (threads_ + warpSize - 1) / warpSize;
    machine_.shared.emplace(shared, entry.sharedGranule, warps);
    for (uint32_t number = 0; number < warps; ++number)
      warps_.push_back(makeWarp(number));
  }

  Warp makeWarp(uint32_t number) {
    const Entry& entry = *machine_.entry;
    Warp warp;
    warp.number = number;
    uint32_t lanes = std::min<uint32_t>(warpSize, threads_ - number * warpSize);
    warp.started = lanes == warpSize ? ~Mask{0} : (Mask{1} << lanes) - 1;
    warp.memory = std::make_unique<char[]>(entry.fileBytes + 64);
    auto address = reinterpret_cast<uintptr_t>(warp.memory.get());
    warp.file = warp.memory.get() + (64 - address % 64) % 64;
    warp.written.resize(entry.registers.size());
    for (const Preset& preset : entry.presets)
      if (preset.value == Preset::Value::Immediate)
        fill(warp, preset, [&](int) { return preset.bits; });
    return warp;
  }

  template <typename Value> void fill(Warp& warp, const Preset& preset, Value value) {
    const Register& held = machine_.entry->registers[preset.reg];
    char* column = warp.file + held.at;
    if (held.width == Width::Predicate) {
      Mask bits = value(0) ? ~Mask{0} : 0;
      std::memcpy(column, &bits, sizeof(bits));
      return;
    }
    auto bytes = static_cast<size_t>(held.width);
    for (int lane = 0; lane < warpSize; ++lane) {
      uint64_t bits = value(lane);
      std::memcpy(column + lane * bytes, &bits, bytes);
    }
  }

  /// Special registers of one warp, in the block that comes next.
  void fillSpecial(Warp& warp, const Preset& preset) {
    using enum Preset::Value;
    auto dimension = [&](Preset::Value first) {
      return static_cast<int>(preset.value) - static_cast<int>(first);
    };
    fill(warp, preset, [&](int lane) -> uint64_t {
      switch (preset.value) {
      case Immediate:
        return preset.bits;
      case TidX:
      case TidY:
      case TidZ:
        return threadAt(warp.number * warpSize + lane, launch_.block)[dimension(TidX)];
      case NtidX:
      case NtidY:
      case NtidZ:
        return launch_.block[dimension(NtidX)];
      case CtaidX:
      case CtaidY:
      case CtaidZ:
        return machine_.place.block[dimension(CtaidX)];
      case NctaidX:
      case NctaidY:
      case NctaidZ:
        return launch_.grid[dimension(NctaidX)];
      case LaneId:
        return lane;
      case WarpId:
        return warp.number;
      case NwarpId:
        return warps_.size();
      case Undefined:
        return machine_.nextGarbage();
      }
      return 0;
    });
  }

  void start(Warp& warp) {
    warp.live = warp.started;
    warp.groups = {{0, warp.started, false}};
    warp.budget = launch_.warpBudget;
    warp.atBarrier.reset();
    warp.copies.reset();
    std::fill(warp.written.begin(), warp.written.end(), 0);
    for (const Preset& preset : machine_.entry->presets) {
      warp.written[preset.reg] = ~Mask{0};
      if (preset.value != Preset::Value::Immediate)
        fillSpecial(warp, preset);
    }
  }

  std::vector<uint32_t> chosenBlocks() const {
    return launch_.blocks.empty() ? firstNumbers(blocks_) : launch_.blocks;
  }

  static std::vector<uint32_t> firstNumbers(size_t count) {
    std::vector<uint32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }

  /// Rising numbers in the order of the launch.
  std::vector<uint32_t> arranged(std::vector<uint32_t> numbers) {
    if (launch_.order == Order::Descending)
      std::reverse(numbers.begin(), numbers.end());
    else if (launch_.order == Order::Random)
      shuffler_.shuffle(numbers);
    return numbers;
  }

  bool runBlock(uint32_t number) {
    machine_.blockNumber = number;
    machine_.place.block = threadAt(number, launch_.grid);
    machine_.shared->reset();
    for (Warp& warp : warps_)
      start(warp);
    do {
      for (uint32_t warp : arranged(firstNumbers(warps_.size()))) {
        machine_.place.warp = warp;
        if (!runWarp(machine_, warps_[warp]))
          return false;
      }
      if (!release())
        return false;
    } while (std::any_of(warps_.begin(), warps_.end(),
                         [](const Warp& warp) { return !warp.groups.empty(); }));
    return true;
  }

  /// All warps have exited, or all are at one barrier, which opens.
  bool release() {
    const Warp* waiting = nullptr;
    for (const Warp& warp : warps_)
      if (warp.atBarrier)
        waiting = &warp;
    if (!waiting)
      return true;
    for (const Warp& warp : warps_)
      if (warp.atBarrier != waiting->atBarrier)
        return missing(*waiting, warp);
    for (Warp& warp : warps_)
      warp.atBarrier.reset();
    machine_.shared->barrier();
    ++machine_.counters.barriers;
    return true;
  }

  bool missing(const Warp& waiting, const Warp& other) {
    const Instruction& barrier = machine_.entry->code[waiting.groups[0].pc - 1];
    machine_.place.warp = waiting.number;
    std::string where = other.atBarrier ? fmt::format("is at barrier {}", *other.atBarrier)
                                        : std::string("has exited");
    return machine_.fail(barrier, 0,
                         fmt::format("waits at barrier {} for warp {}, which {}",
                                     *waiting.atBarrier, other.number, where));
  }

  Counters counters() {
    Counters& all = machine_.counters;
    auto of = [&](Class counter) { return machine_.classes[static_cast<int>(counter)]; };
    all.float32 = of(Class::Float32);
    all.float64 = of(Class::Float64);
    all.integer = of(Class::Integer);
    all.conversion = of(Class::Conversion);
    all.move = of(Class::Move);
    all.predicate = of(Class::Predicate);
    all.memory = of(Class::Memory);
    all.parameter = of(Class::Parameter);
    all.control = of(Class::Control);
    all.exchange = of(Class::Exchange);
    all.matrix = of(Class::Matrix);
    return all;
  }

  const Launch& launch_;
  Shuffler shuffler_;
  Machine machine_;
  uint32_t threads_ = 0, blocks_ = 0;
  std::vector<Warp> warps_;
};

} // namespace

Result<Counters> run(const Module& module, const Launch& launch, Memory& memory) {
  return Launcher(module, launch, memory).run();
}

} // namespace titan::ptx
