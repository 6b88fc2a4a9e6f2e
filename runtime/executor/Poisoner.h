// Proves the memory plan by execution: every temporary holds NaN before its first and after its
// last command, results hold NaN until they are written, those of a collective from its start to
// its wait, the padding of states holds NaN when a function begins, and the bytes that the plan
// gives to nobody hold a pattern that must survive, as the sources of a collective must up to its
// wait. A program that computes the same under the poisoner reads nothing it did not write and
// writes nowhere else.
#pragma once

#include "runtime/device/Device.h"
#include "runtime/program/Program.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace titan {

class Poisoner final : public CommandObserver {
public:
  /// Fills the unplanned bytes of the device's arena. `device` was made for `program`, as that
  /// rank's; both outlive the poisoner.
  static Result<std::unique_ptr<Poisoner>> create(const Program& program, Device& device,
                                                  int64_t rank = 0);

  void beforeFunction(const Function& function) override;
  void before(const Function& function, uint32_t command) override;
  void after(const Function& function, uint32_t command) override;

  /// Internal, with the first offset, if an unplanned byte was written, or with the collective, if
  /// one of its sources was before its wait; the errors of the device, those met while a function
  /// ran among them.
  Status check() const;

private:
  struct Buffer {
    int64_t offset = 0, bytes = 0; ///< of the arena
  };
  /// A collective of the program: its buffers, but for those in whose place the sum comes and those
  /// that follow a repeat's counter, and what its sources held when it was started.
  struct Exchange {
    std::string label;
    std::vector<Buffer> ins, outs;
    std::vector<std::vector<char>> held;
  };

  explicit Poisoner(Device& device) : device_(&device) {}
  void addExchanges(const Program& program, std::span<const int64_t> coordinates);
  void poison(int64_t offset, int64_t bytes);
  std::vector<char> read(Buffer buffer);
  void compare(const Exchange& exchange);

  Device* device_;
  std::vector<Exchange> exchanges_;          ///< by Program::collectives
  using Range = std::pair<int64_t, int64_t>; ///< [begin, end)
  std::vector<Range> unplanned_, padding_;
  Status status_; ///< of the calls so far
};

} // namespace titan
