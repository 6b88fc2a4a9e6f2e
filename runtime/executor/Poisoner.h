// Proves the memory plan by execution: every temporary holds NaN before its first and after its
// last command, results hold NaN until they are written, and the bytes that the plan gives to
// nobody hold a pattern that must survive. A program that computes the same under the poisoner
// reads nothing it did not write and writes nowhere else.
#pragma once

#include "runtime/device/Device.h"

#include <memory>
#include <utility>
#include <vector>

namespace titan {

class Poisoner final : public CommandObserver {
public:
  /// Fills the unplanned bytes of the device's arena. `device` was made for `program`; both outlive
  /// the poisoner.
  static Result<std::unique_ptr<Poisoner>> create(const Program& program, Device& device);

  void beforeFunction(const Function& function) override;
  void before(const Function& function, uint32_t command) override;
  void after(const Function& function, uint32_t command) override;

  /// Internal, with the first offset, if an unplanned byte was written; the errors of the device,
  /// those met while a function ran among them.
  Status check() const;

private:
  explicit Poisoner(Device& device) : device_(&device) {}
  void poison(int64_t offset, int64_t bytes);

  Device* device_;
  std::vector<std::pair<int64_t, int64_t>> unplanned_; ///< [begin, end)
  Status status_;                                      ///< of the calls so far
};

} // namespace titan
