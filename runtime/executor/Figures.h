// What one execution of a function amounts to: once from the table (the plan), once counted while
// it runs. They are equal.
#pragma once

#include "runtime/device/CommandObserver.h"

namespace titan {

struct Figures {
  /// Commands executed, repeats multiplied out. `gemms`: what a library may compute, which on cards
  /// is attention, too.
  int64_t kernels = 0, gemms = 0, copies = 0, zeros = 0;
  int64_t flops = 0;
  int64_t bytes = 0;        ///< read + written, each command's operands once
  int64_t maxLiveBytes = 0; ///< the largest sum of live temporaries at any command
  int64_t commands() const { return kernels + gemms + copies + zeros; }
  bool operator==(const Figures&) const = default;
};

/// From the table alone.
Figures plannedFigures(const Function& function);

/// Counts while a function runs; start() before each run that is to be counted alone.
class Recorder final : public CommandObserver {
public:
  void start() { figures_ = {}; }
  const Figures& figures() const { return figures_; }
  void after(const Function& function, uint32_t command) override;

private:
  Figures figures_;
};

} // namespace titan
