#include "runtime/data/MappedFile.h"
#include "runtime/host/KernelThread.h"
#include "runtime/job/Agreement.h"
#include "runtime/job/Compare.h"
#include "runtime/job/Evaluate.h"
#include "runtime/job/Info.h"
#include "runtime/job/JobImage.h"
#include "runtime/job/Plan.h"
#include "runtime/job/Predict.h"
#include "runtime/job/Profile.h"
#include "runtime/job/Sample.h"
#include "runtime/job/Train.h"
#include "runtime/job/Tune.h"
#include "runtime/launch/Ranks.h"
#include "runtime/program/Payload.h"
#include "runtime/program/Process.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

namespace titan {
namespace {

Status runCommand(Session& session) {
  switch (session.options().command) {
  case JobCommand::Train:
    return trainJob(session);
  case JobCommand::Eval:
    return evaluateJob(session);
  case JobCommand::Predict:
    return predictJob(session);
  case JobCommand::Sample:
    return sampleJob(session);
  case JobCommand::Plan:
    return planJob(session);
  case JobCommand::Info:
    return infoJob(session);
  case JobCommand::Profile:
    return profileJob(session);
  case JobCommand::Tune:
    return tuneJob(session);
  case JobCommand::Compare:
    return compareJob(session);
  }
  return Error::internal("unknown command");
}

/// What --version prints; works for a job whose table is damaged, too.
std::string versionOf(const JobImage& image) {
  if (image.programs.empty())
    return "titan job without a program";
  const Result<Program> program = deserialize(image.programs[0].table);
  return program.ok() ? fmt::format("titan {}, model {}", program->compilerVersion, program->model)
                      : "titan job with a damaged program";
}

/// What a process finds without the others.
struct Opened {
  std::shared_ptr<const MappedFile> self;
  JobImage image;
  std::optional<JobOptions> options; ///< nothing: help was asked for, and is printed
  std::unique_ptr<Session> session;
};

Status open(const std::vector<std::string>& arguments, const launch::RankInfo& info, Peers& peers,
            Opened& opened) {
  JobImage& image = opened.image;
  opened.options = TITAN_TRY(parseCommandLine(arguments, image.executable, versionOf(image),
                                              /*quiet=*/info.rank != 0));
  if (!opened.options)
    return {};
  if (opened.options->threads == 0)
    opened.options->threads = launch::defaultThreads(info);
  if (image.attachedBytes > 0) {
    opened.self = TITAN_TRY(MappedFile::open("/proc/self/exe"));
    const std::span<const char> bytes = opened.self->bytes();
    image.payload = TITAN_TRY(findPayload({bytes.data(), bytes.size()}, image.attachedBytes));
  }
  opened.session = TITAN_TRY(Session::open(*opened.options, image, info.ranks, peers));
  return {};
}

/// The compute threads are there already where they work on collectives.
Status connect(const launch::RankInfo& info, const Session* session, Peers& peers) {
  const bool imagines = session && session->options().rank;
  if (info.isAlone() && !imagines)
    return {};
  std::unique_ptr<ThreadPool> pool;
  if (session && !explains(session->options().command))
    pool = TITAN_TRY(ThreadPool::create(session->threads()));
  if (imagines) {
    peers = Peers::imagined(std::move(pool),
                            TITAN_TRY(launch::connectWithoutPeers(
                                *session->options().rank, rankCount(session->program().mesh))));
    return {};
  }
  ConnectOptions options{.pool = pool.get()};
  if (session)
    options.limits = {session->recipe().mesh.warnAfter, session->recipe().mesh.killAfter};
  std::unique_ptr<Communicator> communicator = TITAN_TRY(launch::connect(info, options));
  peers = Peers(std::move(pool), std::move(communicator));
  return {};
}

Status run(const std::vector<std::string>& arguments, const JobImage& image, Peers& peers) {
  const launch::RankInfo info = TITAN_TRY(launch::detectRank());
  Opened opened;
  opened.image = image;
  Status mine = open(arguments, info, peers, opened);
  TITAN_TRY(connect(info, opened.session.get(), peers));
  TITAN_TRY(peers.agree("the start", std::move(mine)));
  TITAN_TRY(agreeOn(peers, "the agreement", [&] {
    return opened.session ? factsOf(*opened.session) : std::vector<Fact>{{"the command", "--help"}};
  }));
  if (!opened.session || (explains(opened.options->command) && !peers.isFirst()))
    return {};
  TITAN_TRY(runCommand(*opened.session));
  return opened.session->checkMemory();
}

/// Libraries underneath may throw; nothing leaves the process as an exception.
Status runGuarded(const std::vector<std::string>& arguments, const JobImage& image, Peers& peers) {
  try {
    return run(arguments, image, peers);
  } catch (const std::bad_alloc&) {
    return Error::environment("out of memory");
  } catch (const std::system_error& error) { // what fmt throws on a full disk
    return Error::environment("{}", error.what());
  } catch (const std::exception& error) {
    return Error::internal("{}", error.what());
  }
}

/// One rank's part in the job. The thread that connects makes every call of the communicator, the
/// last one and its end included.
int runRank(const std::vector<std::string>& arguments, const JobImage& image) {
  Peers peers;
  Status status = runGuarded(arguments, image, peers);
  if (std::fflush(stdout) != 0 && status.ok())
    status = Error::environment("stdout cannot be written: {}", std::strerror(errno));
  return peers.end(std::move(status));
}

} // namespace

int runJob(const std::vector<std::string>& arguments, const JobImage& image) {
  int code = 0;
  Status started = runWithKernelStack([&] { code = runRank(arguments, image); });
  return started.ok() ? code : Peers().end(std::move(started));
}

} // namespace titan
