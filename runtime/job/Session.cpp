#include "runtime/job/Session.h"

#include "runtime/device/cpu/CpuFeatures.h"
#include "runtime/job/Overrides.h"

#include <filesystem>

namespace titan {
namespace {

// PrefetchLoader's default depth: so many batches of the step are ready at most.
constexpr int64_t batchesAhead = 4;

std::string directoryOfJob(const std::string& executable) {
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (error ? std::filesystem::path(executable) : self).parent_path().string();
}

} // namespace

Result<std::unique_ptr<Session>> Session::open(const JobOptions& options, const JobImage& image) {
  std::unique_ptr<Session> session(new Session(options, image));
  session->program_ = TITAN_TRY(deserialize(image.program));
  session->recipe_ = TITAN_TRY(recipeOfRun(session->program_, options));
  // Plan and info explain a job on any machine.
  if (options.command != JobCommand::Plan && options.command != JobCommand::Info)
    TITAN_TRY(checkCpuFeatures(session->program_.target.features, session->program_.target.cpu));
  session->threads_ = options.threads > 0 ? options.threads : allowedCpus();
  return session;
}

Status Session::chooseGemm(const std::string& savedGemm) {
  if (program_.libraryCalls.empty())
    return {};
  const bool asked = options_->gemm != "auto";
  const std::string& wanted = asked ? options_->gemm : savedGemm;
  if (wanted == "generated")
    return {};
  Result<OneDnn> library = OneDnn::load();
  if (library.ok()) {
    oneDnn_ = library.take();
    gemm_ = "onednn";
  } else if (asked) {
    return library.takeError();
  }
  return {};
}

Status Session::start(uint64_t seed, const std::string& savedGemm) {
  TITAN_TRY(chooseGemm(savedGemm));
  pool_ = TITAN_TRY(ThreadPool::create(threads_));
  executor_ = TITAN_TRY(Executor::create(
      program_, image_->kernels, {.pool = pool_.get(), .oneDnn = oneDnn_ ? &*oneDnn_ : nullptr}));
  InitialStateSources sources;
  sources.payload = image_->payload;
  for (const std::string& directory :
       {options_->weightsDirectory, image_->weightsDirectory, directoryOfJob(image_->executable)})
    if (!directory.empty()) {
      sources.weightsDirectory = directory;
      break;
    }
  sources.seed = seed;
  TITAN_TRY(executor_->initialize(sources));
  if (options_->poison) {
    poisoner_.emplace(*executor_);
    executor_->setObserver(&*poisoner_);
  }
  return {};
}

Status Session::checkMemory() const { return poisoner_ ? poisoner_->checkUnplanned() : Status(); }

checkpoint::ProgramInfo Session::describe() const {
  return checkpoint::describe(program_, {{"gemm", gemm_}}, toJson(recipe_));
}

checkpoint::LoadRequest Session::loadRequest() const {
  return {checkpoint::destinations(program_, executor_->arena()), describe()};
}

OutsideBytes outsideBytes(const Program& program, int threads, bool library) {
  OutsideBytes outside;
  if (library && !program.libraryCalls.empty())
    outside.gemm = threads * OneDnn::outsideBytesPerThread;
  if (const Function* step = program.findFunction("step"))
    for (const Binding& binding : step->bindings)
      if (binding.role == Binding::Role::Input)
        outside.batches += batchesAhead * binding.bytes;
  return outside;
}

void printNote(const std::string& message) { fmt::print(stderr, "note: {}\n", message); }

} // namespace titan
