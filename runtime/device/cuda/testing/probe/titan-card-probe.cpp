// titan-card-probe [--bytes N] [--repeats N] [--card N] [--attention]
//
// Prints as JSON what a machine with a card is: the card and its driver, where the vendor's
// libraries lie and how old they are, what memory a context takes, how fast the card copies, and
// what a launch and a node of a graph cost. With --attention also what cuDNN's attention is there.
// Exit 3: there is no card, or no cuDNN where it is asked for.
#include "runtime/device/cuda/Card.h"
#include "runtime/device/cuda/Owned.h"
#include "runtime/device/cuda/testing/probe/AttentionProbe.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <dlfcn.h>
#include <iostream>
#include <sstream>

namespace {

using namespace titan;
using namespace titan::cuda;
using nlohmann::ordered_json;

struct Options {
  int64_t bytes = int64_t{1} << 30; ///< of a copy
  int repeats = 7, card = 0;
  int launches = 1000; ///< of a row of empty kernels
  bool attention = false;
};

constexpr const char* emptyPtx = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry empty()
{
  ret;
}
)";

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

/// A vendor's library and the function that tells its version, without arguments.
struct Library {
  const char *name, *version;
};
constexpr std::array libraries = {Library{"libcublasLt.so.13", "cublasLtGetVersion"},
                                  Library{"libcublas.so.13", nullptr},
                                  Library{"libcudnn.so.9", "cudnnGetVersion"},
                                  Library{"libcudart.so.13", nullptr},
                                  Library{"libnvrtc.so.13", nullptr},
                                  Library{"libnccl.so.2", nullptr}};
constexpr const char* jitLinker = "libnvJitLink.so.13";

/// In the folders of TITAN_CUDA_LIBRARIES, then by the loader. Null: in none.
void* open(const std::string& name) {
  const char* named = std::getenv("TITAN_CUDA_LIBRARIES");
  std::istringstream folders(named ? named : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (void* library = dlopen((folder + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL))
      return library;
  return dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
}

std::string pathOf(void* library, const char* name) {
  std::array<char, PATH_MAX> origin{};
  if (dlinfo(library, RTLD_DI_ORIGIN, origin.data()) != 0)
    return "unknown";
  return std::string(origin.data()) + "/" + name;
}

ordered_json describe(const Library& library) {
  void* handle = open(library.name);
  if (!handle)
    return {{"missing", dlerror()}};
  ordered_json found = {{"path", pathOf(handle, library.name)}};
  using Version = size_t (*)();
  if (library.version)
    if (auto version = reinterpret_cast<Version>(dlsym(handle, library.version)))
      found["version"] = version();
  return found;
}

ordered_json describeJitLinker() {
  void* handle = open(jitLinker);
  if (!handle)
    return {{"missing", dlerror()}};
  ordered_json found = {{"path", pathOf(handle, jitLinker)}};
  using Version = int (*)(unsigned*, unsigned*);
  unsigned major = 0, minor = 0;
  auto version = reinterpret_cast<Version>(dlsym(handle, "nvJitLinkVersion"));
  if (version && version(&major, &minor) == 0)
    found["version"] = fmt::format("{}.{}", major, minor);
  return found;
}

//===----------------------------------------------------------------------===//
// The card
//===----------------------------------------------------------------------===//

class Probe {
public:
  static Result<ordered_json> run(const Options& options) {
    Probe probe(options, TITAN_TRY(Driver::load()));
    return probe.all();
  }

private:
  Probe(const Options& options, Driver driver) : options_(options), driver_(std::move(driver)) {}

  Result<ordered_json> all() {
    const Card card = TITAN_TRY(chooseCard(driver_, options_.card));
    ordered_json found;
    int processors = 0;
    TITAN_TRY(driver_.need(driver_.cuDeviceGetAttribute(
                               &processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, card.handle),
                           "counting multiprocessors"));
    found["card"] = {{"name", card.name},
                     {"arch", card.capability.arch()},
                     {"multiprocessors", processors},
                     {"bytes", card.bytes},
                     {"shared_bytes_of_block", card.sharedBytes}};
    found["driver"] = versionText(driver_.version());
    TITAN_TRY(openContext(card));
    found["memory"] = TITAN_TRY(memory());
    found["copies"] = TITAN_TRY(copies());
    found["launches"] = TITAN_TRY(launches());
    if (options_.attention)
      found["attention"] =
          TITAN_TRY(probeAttention(driver_, card, stream_.get(), options_.repeats));
    return found;
  }

  Status openContext(const Card& card) {
    CUcontext context = nullptr;
    TITAN_TRY(need(driver_.cuDevicePrimaryCtxRetain(&context, card.handle), "a context"));
    context_ = OwnedContext(driver_, card.handle);
    TITAN_TRY(need(driver_.cuCtxSetCurrent(context), "a context"));
    CUstream stream = nullptr;
    TITAN_TRY(need(driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "a stream"));
    stream_ = OwnedStream(driver_, stream);
    for (OwnedEvent* event : {&start_, &end_}) {
      CUevent made = nullptr;
      TITAN_TRY(need(driver_.cuEventCreate(&made, CU_EVENT_DEFAULT), "an event"));
      *event = OwnedEvent(driver_, made);
    }
    return {};
  }

  Result<int64_t> freeBytes() const {
    size_t free = 0, total = 0;
    TITAN_TRY(need(driver_.cuMemGetInfo_v2(&free, &total), "the card's memory"));
    return static_cast<int64_t>(free);
  }

  /// What is in use when nothing but this context is there, and what the first code adds.
  Result<ordered_json> memory() {
    size_t free = 0, total = 0;
    TITAN_TRY(need(driver_.cuMemGetInfo_v2(&free, &total), "the card's memory"));
    const int64_t before = TITAN_TRY(freeBytes());
    CUmodule module = nullptr;
    TITAN_TRY(need(driver_.cuModuleLoadDataEx(&module, emptyPtx, 0, nullptr, nullptr), "code"));
    module_ = OwnedModule(driver_, module);
    TITAN_TRY(need(driver_.cuModuleGetFunction(&empty_, module, "empty"), "code"));
    TITAN_TRY(launch());
    TITAN_TRY(need(driver_.cuStreamSynchronize(stream_.get()), "an empty kernel"));
    return ordered_json{{"total_bytes", total},
                        {"free_bytes", free},
                        {"context_bytes", static_cast<int64_t>(total - free)},
                        {"first_code_bytes", before - TITAN_TRY(freeBytes())}};
  }

  Status launch() const {
    return need(
        driver_.cuLaunchKernel(empty_, 1, 1, 1, 32, 1, 1, 0, stream_.get(), nullptr, nullptr),
        "an empty kernel");
  }

  /// The median of the seconds that the stream takes for what `queue` gives it, after a first time.
  template <typename Queue> Result<double> seconds(Queue queue) const {
    std::vector<double> taken;
    for (int i = 0; i <= options_.repeats; ++i) {
      TITAN_TRY(need(driver_.cuEventRecord(start_.get(), stream_.get()), "an event"));
      TITAN_TRY(queue());
      TITAN_TRY(need(driver_.cuEventRecord(end_.get(), stream_.get()), "an event"));
      TITAN_TRY(need(driver_.cuEventSynchronize(end_.get()), "an event"));
      float milliseconds = 0;
      TITAN_TRY(
          need(driver_.cuEventElapsedTime(&milliseconds, start_.get(), end_.get()), "an event"));
      if (i > 0)
        taken.push_back(milliseconds * 1e-3);
    }
    std::ranges::nth_element(taken, taken.begin() + taken.size() / 2);
    return taken[taken.size() / 2];
  }

  Result<OwnedMemory> allocate() const {
    CUdeviceptr address = 0;
    TITAN_TRY(need(driver_.cuMemAlloc_v2(&address, static_cast<size_t>(options_.bytes)),
                   fmt::format("allocating {} bytes", options_.bytes)));
    return OwnedMemory(driver_, address);
  }

  /// Bytes a second; a copy on the card counts bytes read and bytes written.
  Result<ordered_json> copies() const {
    const auto bytes = static_cast<size_t>(options_.bytes);
    const OwnedMemory a = TITAN_TRY(allocate()), b = TITAN_TRY(allocate());
    void* pinned = nullptr;
    TITAN_TRY(need(driver_.cuMemHostAlloc(&pinned, bytes, 0), "pinned memory"));
    const OwnedHostMemory host(driver_, pinned);
    TITAN_TRY(need(driver_.cuMemsetD8Async(a.get(), 0x5a, bytes, stream_.get()), "a fill"));
    CUstream stream = stream_.get();
    const double down = TITAN_TRY(seconds(
        [&] { return need(driver_.cuMemcpyDtoHAsync_v2(pinned, a.get(), bytes, stream), "D2H"); }));
    const double up = TITAN_TRY(seconds(
        [&] { return need(driver_.cuMemcpyHtoDAsync_v2(a.get(), pinned, bytes, stream), "H2D"); }));
    const double across = TITAN_TRY(seconds([&] {
      return need(driver_.cuMemcpyDtoDAsync_v2(b.get(), a.get(), bytes, stream), "a copy");
    }));
    const double fill = TITAN_TRY(seconds(
        [&] { return need(driver_.cuMemsetD8Async(b.get(), 0, bytes, stream), "a fill"); }));
    const auto size = static_cast<double>(bytes);
    return ordered_json{{"bytes", options_.bytes},
                        {"device_bytes_per_second", 2 * size / across},
                        {"fill_bytes_per_second", size / fill},
                        {"host_to_device_bytes_per_second", size / up},
                        {"device_to_host_bytes_per_second", size / down}};
  }

  Status launchRow() const {
    for (int i = 0; i < options_.launches; ++i)
      TITAN_TRY(launch());
    return {};
  }

  /// Seconds from one empty kernel to the next, as launches and as nodes of a graph.
  Result<ordered_json> launches() const {
    const double row = TITAN_TRY(seconds([&] { return launchRow(); }));
    TITAN_TRY(
        need(driver_.cuStreamBeginCapture_v2(stream_.get(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
             "a capture"));
    const Status captured = launchRow();
    CUgraph graph = nullptr;
    TITAN_TRY(need(driver_.cuStreamEndCapture(stream_.get(), &graph), "a capture"));
    const OwnedGraph owned(driver_, graph);
    if (!captured.ok())
      return captured.error();
    CUgraphExec exec = nullptr;
    TITAN_TRY(need(driver_.cuGraphInstantiateWithFlags(&exec, graph, 0), "a graph"));
    const OwnedGraphExec instance(driver_, exec);
    const double nodes = TITAN_TRY(
        seconds([&] { return need(driver_.cuGraphLaunch(exec, stream_.get()), "a graph"); }));
    return ordered_json{{"count", options_.launches},
                        {"seconds_per_launch", row / options_.launches},
                        {"seconds_per_graph_node", nodes / options_.launches}};
  }

  Status need(Answer answer, const std::string& what) const { return driver_.need(answer, what); }

  Options options_;
  Driver driver_;
  OwnedContext context_;
  OwnedStream stream_;
  OwnedEvent start_, end_;
  OwnedModule module_;
  CUfunction empty_ = nullptr;
};

} // namespace

int main(int argc, char** argv) {
  CLI::App app("prints what a machine with a card is, as JSON");
  Options options;
  app.add_option("--bytes", options.bytes, "of a copy")->check(CLI::Range(1L << 12, 1L << 36));
  app.add_option("--repeats", options.repeats, "of a measurement")->check(CLI::Range(1, 1000));
  app.add_option("--launches", options.launches, "in a row")->check(CLI::Range(1, 100000));
  app.add_option("--card", options.card, "as the driver counts");
  app.add_flag("--attention", options.attention, "cuDNN's, beside that of the host");
  CLI11_PARSE(app, argc, argv);
  Result<ordered_json> found = Probe::run(options);
  ordered_json all = found.ok() ? *found : ordered_json{{"error", found.error().message()}};
  for (const Library& library : libraries)
    all["libraries"][library.name] = describe(library);
  all["libraries"][jitLinker] = describeJitLinker();
  std::cout << all.dump(1) << "\n";
  if (found.ok())
    return 0;
  std::cerr << "titan-card-probe: error: " << found.error().message() << "\n";
  return found.error().exitCode();
}
