// A program's image on a card: the module, and a function handle for each launch of its kernels.
#pragma once

#include "runtime/device/cuda/Card.h"
#include "runtime/device/cuda/Owned.h"

#include <span>
#include <string_view>
#include <vector>

namespace titan::cuda {

/// One launch of a kernel, with its function.
struct PreparedLaunch {
  CUfunction function = nullptr;
  unsigned blocks = 1, threads = 1, sharedBytes = 0;
};

class LoadedImage {
public:
  /// Loads the best image that the driver takes; one that it refuses (a cubin of a newer toolkit,
  /// PTX of a newer version) is passed over. `card`'s context is current. Environment: it takes
  /// none, or a block's shared memory is more than the card has. BadInput: an image is damaged.
  static Result<LoadedImage> load(const Driver& driver, const Card& card, const Program& program,
                                  std::string_view payload);

  /// Which of Program::images it is.
  const Image& image() const { return *image_; }
  /// The launches of Program::kernels[kernel].
  std::span<const PreparedLaunch> launches(uint32_t kernel) const { return launches_[kernel]; }

private:
  const Image* image_ = nullptr;
  OwnedModule module_;
  std::vector<std::vector<PreparedLaunch>> launches_;
};

} // namespace titan::cuda
