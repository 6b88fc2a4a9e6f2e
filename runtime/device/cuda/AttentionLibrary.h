// A library that computes attention on a card, as the device sees it: cuDNN, or a test's.
#pragma once

#include "runtime/device/cuda/Card.h"
#include "runtime/device/cuda/Driver.h"
#include "runtime/program/Program.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace titan::cuda {

/// One attention call, ready to run.
class AttentionPlan {
public:
  virtual ~AttentionPlan() = default;
  /// Puts the call into the stream, which may be recorded. `operands`: addresses of the command's
  /// operands; the last one is the workspace, where the call has one.
  virtual Answer queue(std::span<const int64_t> operands, CUstream stream) const = 0;
  /// What the library said when queue() last failed; empty: nothing.
  virtual std::string said() const { return {}; }
};

/// A way to compute a call.
struct AttentionOffer {
  /// The library's: with one version on one card the same bits.
  std::string name;
  int64_t workspace = 0; ///< that it needs, bytes
  /// Takes tenths of a second. Environment, with the library's words, where it fails.
  std::function<Result<std::unique_ptr<AttentionPlan>>()> build;
};

class AttentionLibrary {
public:
  virtual ~AttentionLibrary() = default;
  /// "9.19.0"
  virtual const std::string& version() const = 0;
  /// Ways to compute the call that give the same bits in each run, in the order in which the
  /// library thinks that they are fast. `workspace`: bytes that there are, by which a call is cut.
  /// Environment, with the library's words, where there is none.
  virtual Result<std::vector<AttentionOffer>> offers(const Attention& attention,
                                                     int64_t workspace) const = 0;
};

using AttentionLoader = std::function<Result<std::unique_ptr<AttentionLibrary>>(const Card& card)>;

/// cuDNN 9 from the folders of TITAN_CUDA_LIBRARIES, else as the loader finds it. The card's
/// context is current, here and later; all calls come from one thread at a time. Environment, with
/// what was looked for, where it is missing, older than 9.10.0, or this job was built without it.
Result<std::unique_ptr<AttentionLibrary>> loadCudnn(const Card& card);

/// The version of the cuDNN that loadCudnn() finds; needs no card. Its errors.
Result<std::string> findCudnn();

/// A cuDNN without a card: offers() says what it would offer on the card whose properties, as JSON,
/// cuDNN itself recorded (test/card, stage probe); nothing of it can be built. `card` is that card.
/// For tests of what is planned.
Result<std::unique_ptr<AttentionLibrary>> loadCudnnWithoutCard(const Card& card,
                                                               std::string_view properties);

} // namespace titan::cuda
