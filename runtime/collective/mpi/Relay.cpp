#include "runtime/collective/mpi/Relay.h"

#include "runtime/collective/Blame.h"
#include "runtime/program/Process.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <type_traits>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace titan {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds timeToComeToAWait{300}; // before it is told who waited where
constexpr milliseconds timeToSendLast{1000};

template <size_t Size> void copyText(std::string_view text, char (&to)[Size]) {
  const size_t size = std::min(text.size(), Size - 1);
  std::memcpy(to, text.data(), size);
  to[size] = '\0';
}

/// `code`: an errno, or 0.
std::string howItEnded(int code) {
  return code == 0 || code == EPIPE || code == ECONNRESET ? "its connection was closed"
                                                          : std::strerror(code);
}

} // namespace

/// The sender's slot, and the failure that it knows of. Ranks of a job run one program, so on one
/// kind of machine: no byte order.
struct Relay::Message {
  static constexpr uint64_t isMessage = 0x4c525443'4e544954;

  uint64_t magic = isMessage;
  uint32_t rank = 0;
  uint32_t waiting = 0, finished = 0;
  uint32_t hasFailed = 0;
  uint64_t beats = 0, progress = 0, waits = 0;
  int64_t step = -1, waited = 0, failedRank = 0;
  int32_t code = 0, told = 0;
  char waitName[FixedText::capacity] = {};
  char failure[1024] = {};
};

struct Relay::Connection {
  Connection(int64_t rank, Socket socket) : rank(rank), socket(std::move(socket)) {}

  int64_t rank;
  Socket socket;
  Message in, out;
  size_t received = 0;
  size_t sent = sizeof(Message); ///< of `out`
  int sendError = 0;             ///< from here on nothing is sent
  bool isSent() const { return sent == sizeof(Message); }
  bool isOpen() const { return socket.isOpen(); }
};

Relay::Relay(ControlBlock block, int64_t rank, std::vector<Link> links, Options options)
    : block_(block), rank_(rank), options_(std::move(options)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  static_assert(std::is_trivially_copyable_v<Message>);
  for (Link& link : links)
    connections_.push_back(std::make_unique<Connection>(link.rank, std::move(link.socket)));
}

Result<std::unique_ptr<Relay>> Relay::start(ControlBlock block, int64_t rank,
                                            std::vector<Link> links, Options options) {
  std::unique_ptr<Relay> relay(new Relay(block, rank, std::move(links), std::move(options)));
  relay->thread_ = TITAN_TRY(KernelThread::start([relay = relay.get()] { relay->run(); }));
  return relay;
}

Relay::~Relay() {
  isStopping_ = true;
  const uint64_t one = 1;
  if (write(wake_.number(), &one, sizeof one) < 0) // it looks within a message's time, too
    isStopping_ = true;
  thread_.join();
}

void Relay::run() {
  Clock::time_point next = Clock::now();
  while (!isStopping_ || hasToTell() || hasToRecord()) {
    const bool isNew = block_.hasFailed() && !failedAt_;
    if (isNew || Clock::now() >= next) {
      sendAll(/*isLast=*/false);
      next = Clock::now() + milliseconds(millisecondsPerMessage);
    }
    if (block_.hasFailed())
      onFailure();
    const auto left = std::chrono::duration_cast<milliseconds>(next - Clock::now()).count() + 1;
    waitForEvents(static_cast<int>(std::clamp<int64_t>(left, 1, millisecondsPerMessage)));
  }
  sendAll(/*isLast=*/true);
}

void Relay::waitForEvents(int milliseconds) {
  std::vector<pollfd> files;
  if (!isStopping_)
    files.push_back({.fd = wake_.number(), .events = POLLIN, .revents = 0});
  for (const auto& connection : connections_)
    if (connection->isOpen())
      files.push_back({.fd = connection->socket.number(), .events = POLLIN, .revents = 0});
  poll(files.data(), files.size(), milliseconds);
  for (const auto& connection : connections_)
    if (connection->isOpen())
      receive(*connection);
}

/// What does not go out at once goes with the next beat: nothing piles up for a slow peer.
void Relay::sendAll(bool isLast) {
  const RankSlot& slot = block_.slot(rank_);
  const std::optional<Failure> failure = block_.failure();
  Message message;
  message.rank = static_cast<uint32_t>(rank_);
  message.waiting = slot.waiting;
  message.finished = slot.finished;
  message.beats = slot.beats;
  message.progress = slot.progress;
  message.waits = slot.waits;
  message.step = slot.step;
  message.waited = slot.waited;
  copyText(slot.waitName.load(), message.waitName);
  if (failure) {
    message.hasFailed = 1;
    message.failedRank = failure->rank;
    message.code = failure->code;
    message.told = failure->told;
    copyText(failure->message, message.failure);
  }
  const Clock::time_point end = Clock::now() + timeToSendLast;
  for (const auto& each : connections_) {
    Connection& to = *each;
    for (bool isNewest = false; to.isOpen() && to.sendError == 0;) {
      if (to.isSent()) {
        if (isNewest)
          break;
        to.out = message;
        to.sent = 0;
        isNewest = true;
      }
      const ssize_t size =
          send(to.socket.number(), reinterpret_cast<const char*>(&to.out) + to.sent,
               sizeof(Message) - to.sent, MSG_NOSIGNAL);
      if (size > 0) {
        to.sent += static_cast<size_t>(size);
        continue;
      }
      if (errno != EAGAIN && errno != EINTR) {
        to.sendError = errno; // what it said last may still be there to read
        break;
      }
      pollfd ready = {.fd = to.socket.number(), .events = POLLOUT, .revents = 0};
      const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now()).count();
      if (!isLast || left <= 0 || poll(&ready, 1, static_cast<int>(left)) <= 0)
        break;
    }
  }
}

void Relay::receive(Connection& connection) {
  for (;;) {
    const ssize_t size = read(connection.socket.number(),
                              reinterpret_cast<char*>(&connection.in) + connection.received,
                              sizeof(Message) - connection.received);
    if (size < 0 && errno == EINTR)
      continue;
    if (size < 0 && errno == EAGAIN)
      return;
    if (size <= 0)
      return lose(connection, howItEnded(size < 0 ? errno : connection.sendError));
    connection.received += static_cast<size_t>(size);
    if (connection.received < sizeof(Message))
      continue;
    connection.received = 0;
    if (connection.in.magic != Message::isMessage || connection.in.rank != connection.rank)
      return lose(connection, "it sends something else than messages of ranks");
    apply(connection.in);
  }
}

void Relay::apply(const Message& message) {
  RankSlot& slot = block_.slot(message.rank);
  char name[sizeof message.waitName];
  std::memcpy(name, message.waitName, sizeof name);
  name[sizeof name - 1] = '\0';
  slot.waitName.store(FixedText(name));
  slot.beats = message.beats;
  slot.progress = message.progress;
  slot.waits = message.waits;
  slot.step = message.step;
  slot.raiseWaited(message.waited);
  slot.waiting.store(message.waiting, std::memory_order_release);
  slot.finished.store(message.finished, std::memory_order_release);
  if (message.hasFailed == 0)
    return;
  char failure[sizeof message.failure];
  std::memcpy(failure, message.failure, sizeof failure);
  failure[sizeof failure - 1] = '\0';
  const bool isFirst = block_.fail({.code = message.code,
                                    .rank = message.failedRank,
                                    .told = message.told != 0,
                                    .message = failure});
  isToldByFirst_ |= isFirst && message.rank == 0;
}

/// The end of a connection; its rank may have finished.
void Relay::lose(Connection& connection, const std::string& how) {
  connection.socket = Socket();
  if (block_.slot(connection.rank).finished || block_.slot(rank_).finished)
    return;
  block_.fail({.code = static_cast<int>(ErrorCode::RunFailed),
               .rank = connection.rank,
               .told = false,
               .message = fmt::format("{} was lost{}: {}", whoIs(block_, connection.rank),
                                      inStep(block_, connection.rank), how)});
}

void Relay::onFailure() {
  if (!failedAt_)
    failedAt_ = Clock::now();
  const auto since = Clock::now() - *failedAt_;
  if (since < timeToComeToAWait)
    return;
  if (hasToTell())
    tellFailure();
  if (hasToRecord()) {
    isRecorded_ = true;
    options_.record(block_, options_.tells && !isToldByFirst_);
  }
  if (since >= options_.timeToEnd && options_.end)
    options_.end(block_.failure()->code);
}

bool Relay::hasToTell() const {
  return options_.tells && !isTold_ && !isToldByFirst_ && block_.hasFailed() &&
         !block_.failure()->told;
}

void Relay::tellFailure() {
  isTold_ = true;
  const std::optional<Failure> failure = block_.failure();
  const std::string waits = whoWaits(block_, failure->rank);
  tell("error: {}{}{}\n", failure->message, waits.empty() ? "" : "; ", waits);
}

} // namespace titan
