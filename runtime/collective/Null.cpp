#include "runtime/collective/Null.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace titan {
namespace {

class Null final : public Communicator {
public:
  Null(int64_t rank, int64_t ranks, const CommDelay& delay)
      : Communicator(rank, ranks), delay_(delay) {}

  Status setCollectives(std::span<const Collective> collectives,
                        std::span<const MeshAxis> mesh) override {
    if (rankCount(mesh) != ranks())
      return Error::internal("the mesh has {} ranks, the communicator {}", rankCount(mesh),
                             ranks());
    collectives_.assign(collectives.begin(), collectives.end());
    mesh_.assign(mesh.begin(), mesh.end());
    traffic_.assign(collectives.size(), {});
    return {};
  }

  Status shareStaging(std::span<char>) override { return {}; }

  Status start(uint32_t collective, std::span<char* const> ins, std::span<char* const> outs,
               Ticket& ticket) override {
    const Collective& is = collectives_[collective];
    const int64_t size = groupSize(is.axes, mesh_);
    traffic_[collective].payload += payloadBytes(is, size);
    ++traffic_[collective].executions;
    ticket.number = started_++;
    if (!delay_.isNone())
      doneAt_[ticket.number % maxTickets] =
          monotonicNow() + delay_.nanoseconds(wireBytes(is, size));
    for (size_t i = 0; i < is.pieces.size(); ++i)
      fill(is.kind, is.pieces[i], size, ins[i], outs[i]);
    return {};
  }

  Status wait(Ticket ticket) override {
    if (!delay_.isNone())
      sleepUntil(doneAt_[ticket.number % maxTickets]);
    return {};
  }

  Status exchange(std::string_view, std::string_view mine, std::vector<std::string>& all) override {
    all.assign(static_cast<size_t>(ranks()), std::string(mine));
    return {};
  }

  Status broadcast(std::string_view, int64_t, std::span<char>) override { return {}; }

  std::span<const Traffic> traffic() const override { return traffic_; }
  double waitedSeconds(int64_t) const override { return 0; }
  void setStep(int64_t) override {}
  void setRunDirectory(std::string_view) override {}
  void fail(const Error&) override {}
  bool peerFailed() const override { return false; }
  int failureCode() const override { return 0; }
  Status finish() override { return {}; }

private:
  /// Every part of the result is the first of the source.
  static void fill(CollectiveKind kind, const CollectivePiece& piece, int64_t size, const char* in,
                   char* out) {
    const int64_t source = sourceBytes(kind, piece, size), result = resultBytes(kind, piece, size);
    for (int64_t at = 0; at < result; at += source)
      std::memcpy(out + at, in, static_cast<size_t>(std::min(source, result - at)));
  }

  CommDelay delay_;
  std::array<int64_t, maxTickets> doneAt_{}; ///< by ticket
  std::vector<Collective> collectives_;
  std::vector<MeshAxis> mesh_;
  std::vector<Traffic> traffic_;
  uint64_t started_ = 0;
};

} // namespace

std::unique_ptr<Communicator> connectNull(int64_t rank, int64_t ranks, const CommDelay& delay) {
  return std::make_unique<Null>(rank, ranks, delay);
}

} // namespace titan
