#include "runtime/collective/Peers.h"

#include "runtime/program/Process.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace titan {
namespace {

/// An outcome as the ranks exchange it: 0 and a value, or the error's code and message.
std::string written(const Result<std::string>& outcome) {
  const auto code = outcome.ok() ? char{0} : static_cast<char>(outcome.error().code());
  return code + (outcome.ok() ? *outcome : outcome.error().message());
}

bool isError(const std::string& text) { return text.front() != 0; }

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

Result<std::vector<std::string>> Peers::gather(std::string_view name, Result<std::string> mine) {
  if (isAlone()) {
    if (!mine.ok())
      return mine.takeError();
    return std::vector<std::string>{mine.take()};
  }
  std::vector<std::string> all = TITAN_TRY(exchange(name, written(mine)));
  const auto failed = std::ranges::find_if(all, isError);
  if (failed == all.end()) {
    for (std::string& outcome : all)
      outcome.erase(0, 1);
    return all;
  }
  Error error = readBack(*failed);
  if (std::ranges::all_of(all, [&](const std::string& s) { return s == *failed; }))
    return together(std::move(error));
  return together(std::move(error).withContext(fmt::format("rank {}", failed - all.begin())));
}

Status Peers::agree(std::string_view name, Status mine) {
  auto all = gather(name, mine.ok() ? Result<std::string>(std::string()) : mine.takeError());
  return all.ok() ? Status() : Status(all.takeError());
}

Status Peers::broadcast(std::string_view name, int64_t root, std::span<char> bytes) {
  if (isAlone())
    return {};
  TITAN_TRY(communicator_->broadcast(name, root, bytes));
  Traffic& traffic = traffic_.try_emplace(std::string(name)).first->second;
  ++traffic.executions;
  if (root == rank())
    traffic.payload += std::ssize(bytes);
  else if (!areImagined_)
    traffic.moved += std::ssize(bytes);
  return {};
}

Traffic Peers::traffic(std::string_view name) const {
  const auto found = traffic_.find(name);
  return found == traffic_.end() ? Traffic() : found->second;
}

Status Peers::verdictOfFirst(std::string_view name, Status mine) {
  if (isAlone())
    return mine;
  const std::string text = TITAN_TRY(
      fromFirst(name, written(mine.ok() ? Result<std::string>(std::string()) : mine.takeError())));
  return isError(text) ? Status(together(readBack(text))) : Status();
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

void Peers::readWaits(std::span<double> waited) const {
  for (size_t rank = 0; communicator_ && rank < waited.size(); ++rank)
    waited[rank] = communicator_->waitedSeconds(static_cast<int64_t>(rank));
}

void Peers::setRunDirectory(const std::string& directory) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(directory, error);
  if (communicator_ && !error)
    communicator_->setRunDirectory(path.string());
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
      return communicator_->failureCode();
  }
  print(status.error());
  return status.error().exitCode();
}

} // namespace titan
