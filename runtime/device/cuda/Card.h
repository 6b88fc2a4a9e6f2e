// The cards of this machine, and which of a job's images they can run.
#pragma once

#include "runtime/device/cuda/Driver.h"
#include "runtime/program/Program.h"

#include <compare>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace titan::cuda {

/// Compute capability, as in "sm_90".
struct Capability {
  int major = 0, minor = 0;

  auto operator<=>(const Capability&) const = default;
  std::string arch() const { return fmt::format("sm_{}{}", major, minor); }
  /// Of "sm_120" it is 12.0. Nothing for other names, those with a suffix ("sm_90a") among them:
  /// such code runs on no other card than its own.
  static std::optional<Capability> of(std::string_view arch);
};

struct Card {
  int number = 0; ///< as the driver counts those that it shows
  CUdevice handle = 0;
  std::string name; ///< "NVIDIA H100 80GB HBM3"
  Capability capability;
  int64_t bytes = 0;       ///< of its memory
  int64_t sharedBytes = 0; ///< at most, of a block's shared memory

  /// "card 0 (NVIDIA H100 80GB HBM3, sm_90)"
  std::string text() const;
};

/// All that the driver shows. The errors of the driver.
Result<std::vector<Card>> listCards(const Driver& driver);
/// Environment, with what there is, when there is no such card.
Result<Card> chooseCard(const Driver& driver, int64_t number);

/// The images that `card` can run, the best first: a cubin runs on its major version at its minor
/// or a later one, PTX on its target and all later cards. Environment, with what there is and which
/// card it takes, when there is none. They point into `images`.
Result<std::vector<const Image*>> imagesFor(const Card& card, std::span<const Image> images);

/// "a cubin for sm_90"
std::string textOf(const Image& image);

} // namespace titan::cuda
