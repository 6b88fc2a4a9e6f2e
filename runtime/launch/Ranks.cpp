#include "runtime/launch/Ranks.h"

#include "runtime/collective/Null.h"
#include "runtime/collective/SharedMemory.h"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include <fcntl.h>

namespace titan::launch {
namespace {

/// The value of a variable that is a number; nothing where it is not set.
Result<std::optional<int64_t>> numberOf(const char* variable) {
  const char* value = std::getenv(variable);
  if (!value)
    return std::optional<int64_t>();
  const std::string_view text = value;
  int64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size() || number < 0)
    return Error::usage("{} = '{}' is not a number: unset it, or start the job with titan-run",
                        variable, text);
  return std::optional(number);
}

/// The values of two variables that say which one of how many. Both are set, or the first is not.
Status readPair(const char* which, const char* ofHowMany, int64_t& rank, int64_t& ranks) {
  const std::optional<int64_t> one = TITAN_TRY(numberOf(which));
  const std::optional<int64_t> all = TITAN_TRY(numberOf(ofHowMany));
  if (!one || !all)
    return Error::usage("{} is not set, {} is: start the job with titan-run",
                        one ? ofHowMany : which, one ? which : ofHowMany);
  if (*one >= *all)
    return Error::usage("{} = {} is not below {} = {}", which, *one, ofHowMany, *all);
  rank = *one;
  ranks = *all;
  return {};
}

Result<CommDelay> delayOfEnvironment() {
  const char* delay = std::getenv("TITAN_COMM_DELAY");
  return delay ? parseCommDelay(delay) : CommDelay();
}

} // namespace

Result<RankInfo> detectRank() {
  RankInfo info;
  if (!std::getenv("TITAN_RANK") && !std::getenv("TITAN_RANKS"))
    return info;
  TITAN_TRY(readPair("TITAN_RANK", "TITAN_RANKS", info.rank, info.ranks));
  TITAN_TRY(readPair("TITAN_LOCAL_RANK", "TITAN_LOCAL_RANKS", info.localRank, info.localRanks));
  if (info.localRanks > info.ranks)
    return Error::usage("TITAN_LOCAL_RANKS = {} is above TITAN_RANKS = {}", info.localRanks,
                        info.ranks);
  if (const std::optional<int64_t> file = TITAN_TRY(numberOf("TITAN_CONTROL_FD")))
    info.controlFd = static_cast<int>(*file);
  return info;
}

Result<std::unique_ptr<Communicator>> connect(const RankInfo& info, const ConnectOptions& options) {
  if (info.isAlone())
    return connectNull(0, 1);
  if (info.localRanks != info.ranks)
    return Error::environment(
        "{} of {} ranks are on this host: ranks of several hosts do not run yet", info.localRanks,
        info.ranks);
  if (info.controlFd < 0)
    return Error::environment(
        "TITAN_RANKS = {}, and TITAN_CONTROL_FD is not set: start the job with "
        "titan-run -n {}",
        info.ranks, info.ranks);
  // Programs that this process starts are no ranks.
  fcntl(info.controlFd, F_SETFD, FD_CLOEXEC);
  ConnectOptions with = options;
  with.delay = TITAN_TRY(delayOfEnvironment());
  return connectSharedMemory(info.controlFd, info.rank, info.ranks, with);
}

Result<std::unique_ptr<Communicator>> connectWithoutPeers(int64_t rank, int64_t ranks) {
  return connectNull(rank, ranks, TITAN_TRY(delayOfEnvironment()));
}

} // namespace titan::launch
