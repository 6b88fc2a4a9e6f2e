// What runs a job here: which of its programs, on which device, with which libraries, and what the
// machine can do. The one place of the job that knows kinds of devices.
#pragma once

#include "runtime/device/Device.h"
#include "runtime/device/LibraryChoices.h"
#include "runtime/device/MachineLimits.h"
#include "runtime/device/RankPlace.h"
#include "runtime/host/ThreadPool.h"
#include "runtime/program/Program.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace titan {

namespace cuda {
class AttentionLibrary;
struct Card;
} // namespace cuda

/// What --device asks for.
struct DeviceWish {
  std::string kind;   ///< "cpu", "cuda", "reference"; empty: what there is
  int64_t number = 0; ///< of the device among its kind

  /// "auto", "cpu", "cuda", "cuda:1" or "reference". Usage for anything else.
  static Result<DeviceWish> parse(const std::string& text);
};

/// What computed products and attention in the run that is continued.
struct SavedProducts {
  LibraryChoices choices;   ///< without a library: not known, or there is no such run
  LibraryChoices attention; ///< likewise
  int64_t step = 0;         ///< of its checkpoint
};

struct DeviceRequest {
  const Program& program;                  ///< outlives the device, as `kernels` and `pool` do
  std::span<const KernelFunction> kernels; ///< of the program
  std::string_view payload;                ///< of the job, with images
  ThreadPool& pool;
  std::string device = "cpu";               ///< kind
  int64_t number = 0;                       ///< of the device among its kind
  std::string gemm = "auto";                ///< --gemm
  std::string attention = "auto";           ///< --attention
  SavedProducts saved = {};                 ///< auto follows it
  std::optional<LibraryChoices> tuned = {}; ///< of a tuning file
  bool tune = false;                        ///< look for the fastest algorithms of products
  RankPlace place = {};                     ///< among the ranks of the job
  /// The attention library; empty: cuDNN. Tests have another one.
  std::function<Result<std::unique_ptr<cuda::AttentionLibrary>>(const cuda::Card&)>
      attentionLibrary = {};
};

/// What `tune` found for a product.
struct TunedRow {
  std::string label;
  size_t admitted = 0;                      ///< algorithms that were timed
  double firstSeconds = 0, bestSeconds = 0; ///< of the one that is taken untuned; of the fastest
};

/// A function that a card runs as one graph.
struct GraphFigures {
  std::string function;
  int64_t nodes = 0;
  double seconds = 0; ///< that recording and instantiating it took
};

struct ChosenDevice {
  std::unique_ptr<Device> device;
  std::string name; ///< what computes: "8 threads"
  /// What computes products: or "onednn", "cublaslt", "interpreted".
  std::string gemm = "generated";
  std::string gemmVersion;      ///< of the library: "2.6.3"
  LibraryChoices products = {}; ///< where the library has several algorithms
  /// What computes attention, where the program has calls that a library may compute.
  LibraryChoices attention = {};
  std::vector<TunedRow> tuned = {};
  std::vector<std::string> notes = {}; ///< what the user is to know of the choice, a line each
  /// What besides decides its bits, by name: {"cuda.card", "NVIDIA H100, sm_90"}.
  std::vector<std::pair<std::string, std::string>> identity;
  int64_t memoryBytes = 0; ///< the arena's on the device, and what library and device take besides
  /// FLOP/s of large products of a dtype; 0 without a library. Takes some tens of milliseconds.
  std::function<double(DType)> measureProducts = [](DType) { return 0.0; };
  /// What the machine can do at most, with products of a dtype. Takes some tenths of a second. The
  /// errors of the device.
  std::function<Result<MachineLimits>(DType)> measureLimits;
  /// What the device runs as one launch, so far.
  std::function<std::vector<GraphFigures>()> graphs = [] { return std::vector<GraphFigures>(); };
  /// What was exchanged with other ranks so far, by collective of the program.
  std::function<std::vector<Traffic>()> traffic = [] { return std::vector<Traffic>(); };
};

using DeviceChooser = std::function<Result<ChosenDevice>(const DeviceRequest&)>;

/// A device for the program. Environment: no memory for the arena, or no library where --gemm names
/// it.
Result<ChosenDevice> chooseDevice(const DeviceRequest& request);

/// The program that runs here.
struct ChosenProgram {
  size_t index = 0;
  /// The kind of device that runs it: its target's, or a CPU by its reference kernels.
  std::string device;
  std::string note; ///< why it is not the first that could be wished for; empty: it is
};
/// Of the programs of a job the one that `wish` names; without a name the first that this machine
/// can run, cards before the CPU. Environment where there is none; with one program that is left
/// to checkMachine(). `reference` is a program for a card on the CPU.
Result<ChosenProgram> chooseProgram(std::span<const Program> programs, const DeviceWish& wish);
/// Environment, naming what is missing, where device `number` of that kind cannot run `program`.
/// Asks the kernel for registers that a process has on request only, so it stands before threads
/// are started.
Status checkMachine(const Program& program, const std::string& device, int64_t number);

struct DescribeRequest {
  std::string gemm;      ///< --gemm
  std::string attention; ///< --attention
  int threads = 1;
};
/// Target, machine and libraries, for `info` of a program that was chosen.
nlohmann::ordered_json describeMachine(const Program& program, const DescribeRequest& request);
/// The same as lines.
std::string describeMachineText(const Program& program, const nlohmann::ordered_json& info);
/// The CPU's marketing name.
std::string machineName();

/// The product library, for those who ask without a device.
struct ProductLibrary {
  bool found = false;
  std::string version; ///< where it was found
  std::string reason;  ///< where it was not
};
ProductLibrary findProductLibrary();

/// What a run takes on a device of its own, and for it: nothing for a CPU.
struct DeviceMemory {
  int64_t arena = 0;   ///< of the device
  int64_t staging = 0; ///< of the device, for batches on their way
  int64_t driver = 0;  ///< of the device, left free for code that is loaded later
  int64_t pinned =
      0; ///< of the host: for state and batches on their way, and states that lie there
};
std::optional<DeviceMemory> deviceMemory(const Program& program);

/// The operands of `program`'s products: BF16 where any of them reads it, else F32.
DType productType(const Program& program);

/// The largest number of bytes that a run allocates outside of its arena.
struct OutsideBytes {
  int64_t gemm = 0;    ///< packing buffers of the product library
  int64_t batches = 0; ///< batches that are prepared ahead
  /// The program and its libraries, data files as far as they are read, what the runtime keeps.
  int64_t process = int64_t{64} << 20;
  int64_t total() const { return gemm + batches + process; }
};
OutsideBytes outsideBytes(const Program& program, int threads, bool library);

} // namespace titan
