// Sends a signal to a rank of a running job at a chosen moment: lose-rank PID RANKS RANK SIGNAL WHO
// NAME WAITS. For tests that lose ranks.
//
// PID is titan-run's, whose control block this looks into. WHO is "self": RANK itself has come to a
// wait whose name starts with NAME; or "others": another rank sleeps in such a wait, and RANK does
// something else. RANK has entered at least WAITS waits before. Prints the processes of all ranks
// in the moment of the signal. Exit code 1 when titan-run was gone before it came.
#include "runtime/collective/ControlBlock.h"

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace titan {
namespace {

int64_t number(std::string_view text) {
  int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// The control block among the files of a process, or nothing before it has made it.
Result<Mapping> blockOf(const std::string& process, int64_t ranks) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + process + "/fd", error)) {
    if (std::filesystem::read_symlink(entry.path(), error).string().find("memfd:titan-ranks") ==
        std::string::npos)
      continue;
    const int file = open(entry.path().c_str(), O_RDWR | O_CLOEXEC);
    Result<Mapping> mapping = ControlBlock::map(file, ranks);
    close(file);
    if (mapping.ok())
      return mapping;
  }
  return Error::environment("process {} has no control block", process);
}

bool isAt(const RankSlot& slot, const std::string& name) {
  return slot.waitName.load().starts_with(name);
}

bool isTime(const ControlBlock& block, int64_t rank, bool others, const std::string& name,
            int64_t waits) {
  const RankSlot& slot = block.slot(rank);
  if (!slot.attached || slot.waits < static_cast<uint64_t>(waits))
    return false;
  if (!others)
    return isAt(slot, name);
  if (slot.waiting)
    return false;
  for (int64_t peer = 0; peer < block.ranks(); ++peer)
    if (peer != rank && block.slot(peer).waiting && isAt(block.slot(peer), name))
      return true;
  return false;
}

int lose(const std::vector<std::string>& arguments) {
  const auto process = static_cast<pid_t>(number(arguments[0]));
  const int64_t ranks = number(arguments[1]), rank = number(arguments[2]);
  Result<Mapping> memory = blockOf(arguments[0], ranks);
  for (; !memory.ok(); memory = blockOf(arguments[0], ranks))
    if (kill(process, 0) != 0)
      return 1;
  const ControlBlock block(*memory);
  while (!isTime(block, rank, arguments[4] == "others", arguments[5], number(arguments[6]))) {
    // Nobody has waited for titan-run yet: what it leaves behind still has its number.
    if (block.hasFailed() || block.slot(rank).finished || kill(process, 0) != 0)
      return 1;
    usleep(20);
  }
  std::string processes;
  for (int64_t peer = 0; peer < ranks; ++peer)
    processes += fmt::format("{} ", block.slot(peer).pid.load());
  kill(block.slot(rank).pid, static_cast<int>(number(arguments[3])));
  fmt::print("{}\n", processes);
  return 0;
}

} // namespace
} // namespace titan

int main(int argc, char** argv) {
  if (argc != 8)
    return 2;
  return titan::lose({argv + 1, argv + argc});
}
