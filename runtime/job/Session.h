// A job that is ready to run: program, recipe of this run, threads, device, state.
#pragma once

#include "runtime/checkpoint/Load.h"
#include "runtime/collective/Peers.h"
#include "runtime/executor/Executor.h"
#include "runtime/executor/FirstWeights.h"
#include "runtime/executor/Poisoner.h"
#include "runtime/job/ChooseDevice.h"
#include "runtime/job/CommandLine.h"
#include "runtime/job/JobImage.h"
#include "runtime/program/Recipe.h"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace titan {

/// What the state of a session is when it has started.
enum class FirstState : uint8_t {
  Weights, ///< the first one of a run
  Open,    ///< undefined: a checkpoint is loaded over all of it
};

class Session {
public:
  /// Reads the program and checks the CPU: what every command needs, and all that plan and info
  /// need. `peers` outlives the session and may be connected later, before start(). Usage: the
  /// program is for another number of ranks than `started`.
  static Result<std::unique_ptr<Session>> open(const JobOptions& options, const JobImage& image,
                                               int64_t started, Peers& peers);

  /// Threads, device and state. --gemm=auto follows `saved`, so that a resumed run computes the
  /// same bits; without it a tuning file beside the job counts. May be called once.
  /// Fails on all ranks where one of them cannot start, or would compute with another library.
  Status start(uint64_t seed, const SavedProducts& saved, FirstState first);

  /// With --poison: Internal if a command wrote where the plan gives nothing.
  Status checkMemory() const;

  const JobImage& image() const { return *image_; }
  const JobOptions& options() const { return *options_; }
  const Program& program() const { return program_; }
  /// The job's other programs, for commands that say what a job is, where --device names none.
  std::span<const Program> others() const { return others_; }
  const Recipe& recipe() const { return recipe_; }
  Recipe& recipe() { return recipe_; }
  Peers& peers() const { return *peers_; }
  /// `note: ...` on stderr, from rank 0.
  void note(const std::string& message) const;
  int threads() const { return threads_; }
  ThreadPool& pool() { return *pool_; } ///< once started
  /// Host code of the program's kernels, and behind it what finds their bounds.
  std::span<const KernelFunction> kernels() const { return kernels_; }
  Executor& executor() { return *executor_; }
  StateAccess& access() { return executor_->access(); }
  /// What the device that was started is beside a Device.
  const ChosenDevice& device() const { return device_; }
  /// "onednn", "cublaslt" or "generated"
  const std::string& gemm() const { return device_.gemm; }

  /// Identity of this program and run, as checkpoints keep it.
  checkpoint::ProgramInfo describe() const;
  checkpoint::LoadRequest loadRequest();

private:
  InitialStateSources sources(uint64_t seed) const;
  Session(const JobOptions& options, const JobImage& image, Peers& peers)
      : options_(&options), image_(&image), peers_(&peers) {}

  const JobOptions* options_;
  const JobImage* image_;
  Peers* peers_;
  Program program_; ///< the one of the image that runs here
  std::vector<Program> others_;
  std::span<const KernelFunction> kernels_;
  std::string deviceKind_; ///< "cpu" for reference kernels, too
  int64_t deviceNumber_ = 0;
  Recipe recipe_;
  int threads_ = 1;
  std::unique_ptr<ThreadPool> ownPool_; ///< where the peers have none
  ThreadPool* pool_ = nullptr;
  ChosenDevice device_;
  std::optional<Executor> executor_;
  std::unique_ptr<Poisoner> poisoner_;
};

/// `note: ...` on stderr.
void printNote(const std::string& message);

} // namespace titan
