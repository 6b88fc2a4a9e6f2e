// A job that is ready to run: program, recipe of this run, threads, libraries, arena.
#pragma once

#include "runtime/checkpoint/Load.h"
#include "runtime/executor/Poisoner.h"
#include "runtime/job/CommandLine.h"
#include "runtime/job/JobImage.h"
#include "runtime/program/Recipe.h"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace titan {

class Session {
public:
  /// Reads the program and checks the CPU: what every command needs, and all that plan and info
  /// need.
  static Result<std::unique_ptr<Session>> open(const JobOptions& options, const JobImage& image);

  /// Threads, library, arena and initial state. `savedGemm` is the choice of the run that is
  /// continued, or empty:
  /// --gemm=auto follows it, so that a resumed run computes the same bits. May be called once.
  Status start(uint64_t seed, const std::string& savedGemm);

  /// With --poison: Internal if a command wrote where the plan gives nothing.
  Status checkMemory() const;

  const JobImage& image() const { return *image_; }
  const JobOptions& options() const { return *options_; }
  const Program& program() const { return program_; }
  const Recipe& recipe() const { return recipe_; }
  Recipe& recipe() { return recipe_; }
  int threads() const { return threads_; }
  Executor& executor() { return *executor_; }
  /// "onednn" or "generated"
  const std::string& gemm() const { return gemm_; }
  const std::optional<OneDnn>& oneDnn() const { return oneDnn_; }

  /// Identity of this program and run, as checkpoints keep it.
  checkpoint::ProgramInfo describe() const;
  checkpoint::LoadRequest loadRequest() const;

private:
  Session(const JobOptions& options, const JobImage& image) : options_(&options), image_(&image) {}
  Status chooseGemm(const std::string& savedGemm);

  const JobOptions* options_;
  const JobImage* image_;
  Program program_; ///< the one of the image that runs here
  std::span<const KernelFunction> kernels_;
  Recipe recipe_;
  int threads_ = 1;
  std::string gemm_ = "generated";
  std::optional<OneDnn> oneDnn_;
  std::unique_ptr<ThreadPool> pool_;
  std::optional<Executor> executor_;
  std::optional<Poisoner> poisoner_;
};

/// The largest number of bytes that a run allocates outside of its arena.
struct OutsideBytes {
  int64_t gemm = 0;    ///< packing buffers of the product library
  int64_t batches = 0; ///< batches that are prepared ahead
  /// The program and its libraries, data files as far as they are read, what the runtime keeps.
  int64_t process = int64_t{64} << 20;
  int64_t total() const { return gemm + batches + process; }
};
OutsideBytes outsideBytes(const Program& program, int threads, bool library);

/// `note: ...` on stderr.
void printNote(const std::string& message);

} // namespace titan
