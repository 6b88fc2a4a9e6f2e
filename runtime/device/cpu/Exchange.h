// The collectives of a program while it runs.
#pragma once

#include "runtime/device/RankPlace.h"
#include "runtime/device/cpu/PreparedFunction.h"

namespace titan {

class Exchange {
public:
  /// No collectives.
  Exchange() = default;
  /// Tells the communicator what will be exchanged, and shares the staging region of `arena`,
  /// which still holds zeros. Both outlive the object, as `program` does.
  static Result<Exchange> create(const Program& program, const RankPlace& place, char* arena);

  /// A CollectiveStart or CollectiveWait. The communicator's error where it fails.
  Status run(const PreparedCommand& command) {
    const uint32_t collective = command.collective;
    if (command.kind == CommandKind::CollectiveWait)
      return communicator_->wait(tickets_[collective]);
    const auto pieces = static_cast<size_t>(command.units);
    return communicator_->start(collective, {command.operands, pieces},
                                {command.operands + pieces, pieces}, tickets_[collective]);
  }

private:
  Communicator* communicator_ = nullptr;
  std::vector<Communicator::Ticket> tickets_; ///< of what was started, by collective
};

} // namespace titan
