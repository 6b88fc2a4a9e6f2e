#include "runtime/job/Session.h"

#include "runtime/device/cpu/CpuFeatures.h"
#include "runtime/job/Overrides.h"

#include <filesystem>

#include <gnu/libc-version.h>

namespace titan {
namespace {

// PrefetchLoader's default depth: so many batches of the step are ready at most.
constexpr int64_t batchesAhead = 4;

std::string directoryOfJob(const std::string& executable) {
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (error ? std::filesystem::path(executable) : self).parent_path().string();
}

/// All programs of the job, which fit each other.
Result<std::vector<Program>> readPrograms(const JobImage& image) {
  std::vector<Program> programs;
  for (const JobProgram& program : image.programs)
    programs.push_back(TITAN_TRY(deserialize(program.table)));
  TITAN_TRY(verifyJob(programs));
  return programs;
}

/// The number of the program that this build of the runtime can execute.
Result<size_t> choose(std::span<const Program> programs) {
  std::vector<std::string> kinds;
  for (size_t i = 0; i < programs.size(); ++i) {
    if (programs[i].target.kind == "cpu")
      return i;
    kinds.push_back(programs[i].target.kind);
  }
  return Error::environment("the job is compiled for {}, and runs on a CPU only so far: compile it "
                            "with --target=cpu",
                            kinds.empty() ? "nothing" : fmt::format("{}", fmt::join(kinds, ", ")));
}

} // namespace

Result<std::unique_ptr<Session>> Session::open(const JobOptions& options, const JobImage& image) {
  std::unique_ptr<Session> session(new Session(options, image));
  std::vector<Program> programs = TITAN_TRY(readPrograms(image));
  const size_t chosen = TITAN_TRY(choose(programs));
  session->program_ = std::move(programs[chosen]);
  session->kernels_ = image.programs[chosen].kernels;
  session->recipe_ = TITAN_TRY(recipeOfRun(session->program_, options));
  // Plan and info explain a job on any machine.
  if (options.command != JobCommand::Plan && options.command != JobCommand::Info)
    TITAN_TRY(enableCpuFeatures(session->program_.target.features, session->program_.target.cpu));
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
      program_, kernels_, {.pool = pool_.get(), .oneDnn = oneDnn_ ? &*oneDnn_ : nullptr}));
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
  const std::string gemmVersion = oneDnn_ ? oneDnn_->version() : std::string();
  return checkpoint::describe(program_,
                              {{program_.target.kind + ".gemm", {gemm_, gemmVersion}},
                               {"libc", {"glibc", gnu_get_libc_version()}}},
                              recipe_);
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
