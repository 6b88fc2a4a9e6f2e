// What ranks that share no memory know of each other: each has a control block of its own, and a
// thread that mirrors it through rank 0.
//
// Ten times a second a rank sends its slot and the failure, if it knows of one, to rank 0 as a
// message of fixed size, and rank 0 sends its own to all. So rank 0's block has the slots of all
// ranks, and it judges them (Heartbeat.h); another's has rank 0's and its own. A connection that
// ends before its rank has finished is the job's failure, and so is a rank that does not beat.
//
// A failure that nobody has told of yet is told by rank 0; where that one is lost, by one rank of
// each host. A process that does not end after a failure, since it hangs in MPI, is ended.
#pragma once

#include "runtime/collective/ControlBlock.h"
#include "runtime/collective/mpi/Star.h"
#include "runtime/host/KernelThread.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace titan {

class Relay {
public:
  static constexpr int millisecondsPerMessage = 100;

  /// A connection with a rank: rank 0 has one with each, the others one with rank 0.
  struct Link {
    int64_t rank = 0;
    Socket socket;
  };
  struct Options {
    bool tells = true; ///< a failure that nobody tells
    /// Writes what this rank did last, once, after a failure: the block, and where to.
    std::function<void(const ControlBlock& block, bool tells)> record;
    /// Ends the process with the job's exit code.
    std::function<void(int code)> end;
    std::chrono::milliseconds timeToEnd{2000}; ///< after a failure
  };

  /// The block outlives it. Environment when the thread cannot be started.
  static Result<std::unique_ptr<Relay>> start(ControlBlock block, int64_t rank,
                                              std::vector<Link> links, Options options);
  /// The others have what this rank said last, and a failure is told.
  ~Relay();

private:
  struct Message;
  struct Connection;

  Relay(ControlBlock block, int64_t rank, std::vector<Link> links, Options options);
  void run();
  void waitForEvents(int milliseconds);
  void sendAll(bool isLast);
  void receive(Connection& connection);
  void apply(const Message& message);
  void lose(Connection& connection, const std::string& how);
  void onFailure();
  bool hasToTell() const;
  bool hasToRecord() const { return options_.record && !isRecorded_ && block_.hasFailed(); }
  void tellFailure();

  ControlBlock block_;
  int64_t rank_;
  Options options_;
  std::vector<std::unique_ptr<Connection>> connections_;
  Socket wake_; ///< an eventfd
  std::atomic<bool> isStopping_{false};
  bool isToldByFirst_ = false; ///< the failure came from rank 0
  bool isTold_ = false, isRecorded_ = false;
  std::optional<std::chrono::steady_clock::time_point> failedAt_;
  KernelThread thread_;
};

} // namespace titan
