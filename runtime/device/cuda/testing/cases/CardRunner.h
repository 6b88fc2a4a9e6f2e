// Kernel cases on a card: loads their code through the driver, runs them and compares.
#pragma once

#include "runtime/device/cuda/Card.h"
#include "runtime/device/cuda/Owned.h"
#include "runtime/device/cuda/testing/cases/KernelCase.h"

#include <map>
#include <memory>
#include <optional>

namespace titan::cases {

class CardRunner {
public:
  /// On card 0. Environment: no driver, no card.
  static Result<std::unique_ptr<CardRunner>> open();

  const cuda::Card& card() const { return card_; }
  int driverVersion() const { return driver_->version(); }

  /// What differs, a line each; none is success. A module stays loaded. Internal: a launch failed,
  /// which ends the use of the card. `onlyPtx`: its cubin is left alone, and the driver assembles.
  Result<std::vector<std::string>> run(const CaseFile& file, const KernelCase& kernel,
                                       bool onlyPtx = false);
  /// Modules that ran as a cubin, and as PTX.
  int64_t cubins() const { return cubins_; }
  int64_t texts() const { return texts_; }

private:
  /// An allocation with `guard` bytes on both sides.
  struct Placed {
    cuda::OwnedMemory memory;
    int64_t bytes = 0;
  };

  CardRunner() = default;
  Result<cuda::CUmodule> load(const CaseFile& file, const KernelCase& kernel, bool onlyPtx);
  Result<Placed> place(const CaseRegion& region) const;
  Status launch(const KernelCase& kernel, cuda::CUmodule module,
                const std::vector<Placed>& regions) const;
  /// The region's bytes with its guards.
  Result<std::string> fetch(const Placed& region) const;
  Status wait(const std::string& what) const;

  std::unique_ptr<const cuda::Driver> driver_;
  cuda::Card card_;
  cuda::OwnedContext context_;
  cuda::OwnedStream stream_;
  std::map<std::pair<const CaseModule*, bool>, cuda::OwnedModule> modules_;
  int64_t cubins_ = 0, texts_ = 0;
};

} // namespace titan::cases
