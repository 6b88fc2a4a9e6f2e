#include "runtime/job/Session.h"

#include "runtime/job/Agreement.h"
#include "runtime/job/Overrides.h"
#include "runtime/job/ProductFile.h"
#include "runtime/program/Process.h"

#include <filesystem>

#include <gnu/libc-version.h>

namespace titan {
namespace {

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

/// What could compute products.
Fact libraryHere(const Program& program, const std::string& gemm) {
  Fact fact{"oneDNN", "not used"};
  if (program.libraryCalls.empty() || gemm == "generated" || program.target.kind != "cpu")
    return fact;
  const ProductLibrary library = findProductLibrary();
  fact.value = library.found ? library.version : "not found";
  return fact;
}

} // namespace

Result<std::unique_ptr<Session>> Session::open(const JobOptions& options, const JobImage& image,
                                               int64_t started, Peers& peers) {
  std::unique_ptr<Session> session(new Session(options, image, peers));
  std::vector<Program> programs = TITAN_TRY(readPrograms(image));
  const DeviceWish wish = TITAN_TRY(DeviceWish::parse(options.device));
  const ChosenProgram chosen = TITAN_TRY(chooseProgram(programs, wish));
  if (!chosen.note.empty())
    session->note(chosen.note);
  session->program_ = std::move(programs[chosen.index]);
  if (wish.kind.empty() && explains(options.command)) {
    programs.erase(programs.begin() + static_cast<std::ptrdiff_t>(chosen.index));
    session->others_ = std::move(programs);
  }
  session->kernels_ = image.programs[chosen.index].kernels;
  session->deviceKind_ = chosen.device;
  session->deviceNumber_ = wish.number;
  session->recipe_ = TITAN_TRY(recipeOfRun(session->program_, options));
  if (!explains(options.command)) {
    TITAN_TRY(options.rank
                  ? checkImaginedRank(session->program_, started, *options.rank)
                  : checkRankCount(session->program_, started, image.executable, options.command));
    TITAN_TRY(checkMachine(session->program_, chosen.device, wish.number));
    // Its host code asks for a CPU, too.
    if (options.command == JobCommand::Compare && !session->program_.comparisons.empty())
      TITAN_TRY(checkMachine(session->program_, "cpu", 0));
  }
  session->threads_ = options.threads > 0 ? options.threads : allowedCpus();
  return session;
}

Status Session::start(uint64_t seed, const SavedProducts& saved, FirstState first) {
  TITAN_TRY(agreeOn(*peers_, "the product library",
                    [&] { return std::vector<Fact>{libraryHere(program_, options_->gemm)}; }));
  if (!peers_->pool())
    ownPool_ = TITAN_TRY(ThreadPool::create(threads_));
  pool_ = ownPool_ ? ownPool_.get() : peers_->pool();
  const bool tune = options_->command == JobCommand::Tune;
  std::optional<LibraryChoices> tuned;
  if (deviceKind_ == "cuda" && !tune && options_->gemm != LibraryChoices::generated)
    tuned = TITAN_TRY(readProducts(tuningFileOf(image_->executable)));
  // Devices meet while they are made, so that a failure here is told by fail() alone.
  const DeviceRequest request{
      .program = program_,
      .kernels = kernels_.first(std::min(kernels_.size(), program_.kernels.size())),
      .payload = image_->payload,
      .pool = *pool_,
      .device = deviceKind_,
      .number = deviceNumber_,
      .gemm = options_->gemm,
      .attention = options_->attention,
      .saved = saved,
      .tuned = std::move(tuned),
      .tune = tune,
      .place = {peers_->communicator(), peers_->rank()}};
  device_ = TITAN_TRY(image_->chooseDevice ? image_->chooseDevice(request) : chooseDevice(request));
  for (const std::string& text : device_.notes)
    note(text);
  executor_.emplace(program_, *device_.device, peers_->rank());
  TITAN_TRY(peers_->agree("the constants", executor_->prepare(image_->payload)));
  if (first == FirstState::Weights)
    TITAN_TRY(writeFirstWeights(access(), sources(seed), *pool_, *peers_));
  if (options_->poison) {
    poisoner_ = TITAN_TRY(Poisoner::create(program_, *device_.device, peers_->rank()));
    executor_->setObserver(poisoner_.get());
  }
  return {};
}

InitialStateSources Session::sources(uint64_t seed) const {
  InitialStateSources sources;
  sources.payload = image_->payload;
  for (const std::string& directory :
       {options_->weightsDirectory, image_->weightsDirectory, directoryOfJob(image_->executable)})
    if (!directory.empty()) {
      sources.weightsDirectory = directory;
      break;
    }
  sources.seed = seed;
  return sources;
}

Status Session::checkMemory() const { return poisoner_ ? poisoner_->check() : Status(); }

checkpoint::ProgramInfo Session::describe() const {
  checkpoint::Libraries libraries = {
      {program_.target.kind + ".gemm",
       {gemm(), device_.gemmVersion, device_.products.device, device_.products.algorithms}},
      {"libc", {"glibc", gnu_get_libc_version()}}};
  if (const LibraryChoices& attention = device_.attention; !attention.library.empty())
    libraries[program_.target.kind + ".attention"] = {attention.library, attention.version,
                                                      attention.device, attention.algorithms};
  for (const auto& [name, value] : device_.identity)
    libraries[name] = {value, ""};
  return checkpoint::describe(program_, std::move(libraries), recipe_);
}

checkpoint::LoadRequest Session::loadRequest() {
  return {checkpoint::destinations(access()), describe(), peers_, program_.mesh};
}

void Session::note(const std::string& message) const {
  if (peers_->isFirst())
    printNote(message);
}

void printNote(const std::string& message) { tell("note: {}\n", message); }

} // namespace titan
