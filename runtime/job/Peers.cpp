#include "runtime/job/Peers.h"

#include "runtime/program/Process.h"

#include <algorithm>
#include <cstring>

namespace titan {
namespace {

/// An outcome as the ranks exchange it: nothing, or the error's code and message.
std::string written(const Status& status) {
  if (status.ok())
    return {};
  return std::string(1, static_cast<char>(status.error().code())) + status.error().message();
}

Error readBack(const std::string& text) {
  return {static_cast<ErrorCode>(text.front()), text.substr(1)};
}

void print(const Error& error) {
  std::fflush(stderr);
  tell("error: {}\n", error.message());
}

} // namespace

Result<std::vector<std::string>> Peers::exchange(std::string_view name, std::string_view mine) {
  std::vector<std::string> all;
  if (isAlone())
    all.emplace_back(mine);
  else
    TITAN_TRY(communicator_->exchange(name, mine, all));
  return all;
}

Result<std::string> Peers::fromFirst(std::string_view name, std::string_view mine) {
  return TITAN_TRY(exchange(name, isFirst() ? mine : std::string_view())).front();
}

Result<int64_t> Peers::fromFirst(std::string_view name, int64_t mine) {
  int64_t first = mine;
  const std::string_view bytes(reinterpret_cast<const char*>(&mine), sizeof mine);
  std::memcpy(&first, TITAN_TRY(fromFirst(name, bytes)).data(), sizeof first);
  return first;
}

Status Peers::agree(std::string_view name, Status mine) {
  if (isAlone())
    return mine;
  const std::vector<std::string> all = TITAN_TRY(exchange(name, written(mine)));
  const auto failed = std::ranges::find_if(all, [](const std::string& s) { return !s.empty(); });
  if (failed == all.end())
    return {};
  Error error = readBack(*failed);
  if (std::ranges::all_of(all, [&](const std::string& s) { return s == *failed; }))
    return together(std::move(error));
  return together(std::move(error).withContext(fmt::format("rank {}", failed - all.begin())));
}

Status Peers::verdictOfFirst(std::string_view name, Status mine) {
  if (isAlone())
    return mine;
  const std::string text = TITAN_TRY(fromFirst(name, written(mine)));
  return text.empty() ? Status() : Status(together(readBack(text)));
}

Error Peers::together(Error error) {
  together_ = true;
  return error;
}

Status Peers::together(Status status) {
  return status.ok() ? status : Status(together(status.takeError()));
}

void Peers::setStep(int64_t step) {
  if (communicator_)
    communicator_->setStep(step);
}

int Peers::end(Status status) {
  if (communicator_ && (status.ok() || together_)) {
    if (!status.ok() && isFirst())
      print(status.error());
    Status finished = communicator_->finish();
    if (finished.ok() || !status.ok())
      return status.ok() ? 0 : status.error().exitCode();
    status = std::move(finished);
  }
  if (status.ok())
    return 0;
  if (communicator_) {
    communicator_->fail(status.error());
    if (communicator_->peerFailed()) // who failed first tells what happened
      return static_cast<int>(ErrorCode::RunFailed);
  }
  print(status.error());
  return status.error().exitCode();
}

} // namespace titan
