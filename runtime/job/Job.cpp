#include "runtime/data/MappedFile.h"
#include "runtime/host/KernelThread.h"
#include "runtime/job/Evaluate.h"
#include "runtime/job/Info.h"
#include "runtime/job/JobImage.h"
#include "runtime/job/Plan.h"
#include "runtime/job/Predict.h"
#include "runtime/job/Profile.h"
#include "runtime/job/Sample.h"
#include "runtime/job/Train.h"
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

Status run(const std::vector<std::string>& arguments, JobImage image) {
  const std::optional<JobOptions> options =
      TITAN_TRY(parseCommandLine(arguments, image.executable, versionOf(image)));
  if (!options)
    return {};
  std::shared_ptr<const MappedFile> self;
  if (image.attachedBytes > 0) {
    self = TITAN_TRY(MappedFile::open("/proc/self/exe"));
    const std::span<const char> bytes = self->bytes();
    image.payload = TITAN_TRY(findPayload({bytes.data(), bytes.size()}, image.attachedBytes));
  }
  std::unique_ptr<Session> session = TITAN_TRY(Session::open(*options, image));
  TITAN_TRY(runCommand(*session));
  return session->checkMemory();
}

/// Libraries underneath may throw; nothing leaves the process as an exception.
Status runGuarded(const std::vector<std::string>& arguments, const JobImage& image) {
  try {
    return run(arguments, image);
  } catch (const std::bad_alloc&) {
    return Error::environment("out of memory");
  } catch (const std::system_error& error) { // what fmt throws on a full disk
    return Error::environment("{}", error.what());
  } catch (const std::exception& error) {
    return Error::internal("{}", error.what());
  }
}

} // namespace

int runJob(const std::vector<std::string>& arguments, const JobImage& image) {
  Status status;
  Status started = runWithKernelStack([&] { status = runGuarded(arguments, image); });
  if (!started.ok())
    status = std::move(started);
  if (std::fflush(stdout) != 0 && status.ok())
    status = Error::environment("stdout cannot be written: {}", std::strerror(errno));
  if (status.ok())
    return 0;
  std::string message = status.error().message();
  std::fflush(stderr);
  tell("error: {}\n", message);
  return status.error().exitCode();
}

} // namespace titan
