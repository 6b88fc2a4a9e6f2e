// The first half of a window begins with a head that says what the rank is about; then messages go
// through both halves in turn. Whoever writes a half for the second time has seen every reader
// begin the round in between, so with the round before it they are through.
#include "runtime/collective/HostMessages.h"

#include <algorithm>
#include <cstring>

namespace titan {
namespace {

struct Head {
  static constexpr uint64_t isHead =
      0x4d45535341474531; // no number that a sum is likely to begin with
  uint64_t kind = isHead;
  uint64_t length = 0;
  FixedText name;
};

constexpr size_t windowBytes = static_cast<size_t>(ControlBlock::windowBytes);

/// The part of a message that goes in one round: behind the head in the first.
struct Round {
  size_t begin = 0, end = windowBytes - sizeof(Head);
  int half = 0;

  void next() {
    begin = end;
    end += windowBytes;
    half ^= 1;
  }
  size_t place() const { return begin == 0 ? sizeof(Head) : 0; }
  size_t sizeOf(size_t length) const { return std::min(end, std::max(begin, length)) - begin; }
};

void writePart(const Rendezvous& meeting, const Round& round, const char* bytes, size_t length) {
  if (const size_t size = round.sizeOf(length))
    std::memcpy(meeting.window(meeting.rank(), round.half) + round.place(), bytes + round.begin,
                size);
}

void readPart(const Rendezvous& meeting, int64_t rank, const Round& round, char* bytes,
              size_t length) {
  if (const size_t size = round.sizeOf(length))
    std::memcpy(bytes + round.begin, meeting.window(rank, round.half) + round.place(), size);
}

void writeHead(const Rendezvous& meeting, std::string_view name, size_t length) {
  Head head;
  head.length = length;
  head.name = name;
  std::memcpy(meeting.window(meeting.rank(), 0), &head, sizeof head);
}

/// The head that `rank` wrote, which is at the same wait.
Result<Head> readHead(const Rendezvous& meeting, int64_t rank, std::string_view name) {
  Head head;
  std::memcpy(&head, meeting.window(rank, 0), sizeof head);
  if (head.kind != Head::isHead)
    return Error::internal("rank {} is at a collective, rank {} at '{}'", rank, meeting.rank(),
                           name);
  if (head.name.view() != FixedText(name).view())
    return Error::internal("rank {} is at '{}', rank {} at '{}'", rank, head.name.view(),
                           meeting.rank(), name);
  return head;
}

} // namespace

Status exchangeMessages(Rendezvous& meeting, std::span<const int64_t> everyone,
                        std::string_view name, std::string_view mine,
                        std::vector<std::string>& all) {
  TITAN_TRY(meeting.enter(name));
  TITAN_TRY(meeting.claimWindow());
  all.assign(everyone.size(), {});
  Round round;
  writeHead(meeting, name, mine.size());
  writePart(meeting, round, mine.data(), mine.size());
  uint32_t phase = meeting.advance();
  size_t longest = 0;
  for (int64_t rank : everyone) {
    TITAN_TRY(meeting.awaitPhase(rank, phase));
    const Head head = TITAN_TRY(readHead(meeting, rank, name));
    all[static_cast<size_t>(rank)].resize(head.length);
    longest = std::max<size_t>(longest, head.length);
  }
  for (;;) {
    for (int64_t rank : everyone) {
      TITAN_TRY(meeting.awaitPhase(rank, phase));
      std::string& message = all[static_cast<size_t>(rank)];
      readPart(meeting, rank, round, message.data(), message.size());
    }
    round.next();
    if (round.begin >= longest)
      break;
    writePart(meeting, round, mine.data(), mine.size());
    phase = meeting.advance();
  }
  meeting.releaseWindows(everyone);
  return {};
}

Status broadcastBytes(Rendezvous& meeting, std::span<const int64_t> everyone, std::string_view name,
                      int64_t root, std::span<char> bytes) {
  TITAN_TRY(meeting.enter(name));
  const bool isRoot = meeting.rank() == root;
  if (isRoot) {
    TITAN_TRY(meeting.claimWindow());
    writeHead(meeting, name, bytes.size());
  }
  uint32_t phase = 0;
  int rounds = 0;
  for (Round round; rounds == 0 || round.begin < bytes.size(); round.next(), ++rounds) {
    if (isRoot) {
      if (rounds >= 2)
        for (int64_t rank : everyone)
          TITAN_TRY(meeting.awaitPhase(rank, phase));
      writePart(meeting, round, bytes.data(), bytes.size());
      phase = meeting.advance();
      continue;
    }
    phase = meeting.advance();
    TITAN_TRY(meeting.awaitPhase(root, phase));
    if (rounds == 0) {
      const Head head = TITAN_TRY(readHead(meeting, root, name));
      if (head.length != bytes.size())
        return Error::internal("rank {} sends {} bytes at '{}', rank {} expects {}", root,
                               head.length, name, meeting.rank(), bytes.size());
    }
    readPart(meeting, root, round, bytes.data(), bytes.size());
  }
  meeting.releaseWindows(everyone);
  return {};
}

} // namespace titan
