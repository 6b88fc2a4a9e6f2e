// The attention calls of a program that a library computes on a card: which ones, by which plans.
//
// A call takes the plan of the run that is continued, else the first one in the library's order
// that a trial admits (AttentionTrial). That is a function of the call, library and card, so two
// fresh runs agree. What has none is generated.
#pragma once

#include "runtime/device/LibraryChoices.h"
#include "runtime/device/cuda/AttentionLibrary.h"
#include "runtime/device/cuda/BitsDigest.h"

#include <optional>
#include <string>
#include <vector>

namespace titan::cuda {

struct AttentionRequest {
  enum class Mode : uint8_t {
    Generated, ///< without a library
    IfThere,   ///< by the library where it is there, else with a note
    Library,   ///< it is an error where it is not
  };
  Mode mode = Mode::Generated;
  const LibraryChoices* saved = nullptr; ///< of the run that is continued; null: it is a fresh one
  int64_t savedStep = 0;                 ///< of that run
  AttentionLoader load = loadCudnn;
};

/// A command that runs the call, and how the job's own kernels do it.
struct AttentionPlace {
  std::vector<int64_t> operands, bytes; ///< addresses and sizes, the workspace last
  std::function<Answer()> generate;     ///< puts the generated kernels into the stream
};

/// Has the program calls for the library?
bool hasAttentionCalls(const Program& program);

class CardAttention {
public:
  static constexpr const char* libraryName = "cudnn";

  /// Loads the library where `request` wants it and `program` has calls for it. All of these
  /// outlive the object; the card's context is current, here and later. Environment, naming the
  /// library, where it has to be there and is not.
  static Result<CardAttention> open(const Driver& driver, const Card& card, const Program& program,
                                    const AttentionRequest& request);

  /// Does the library compute any call?
  bool isOpen() const { return library_ != nullptr; }
  /// Chooses the plans. `places` are of Program::libraryCalls; what has no `generate` is not run.
  /// Writes to them. The errors of the driver.
  Status choose(std::span<const AttentionPlace> places, CUstream stream);

  /// Does the library compute Program::libraryCalls[call]?
  bool computes(uint32_t call) const { return call < plans_.size() && plans_[call]; }
  Answer queue(uint32_t call, std::span<const int64_t> operands, CUstream stream) const {
    return plans_[call]->queue(operands, stream);
  }

  const LibraryChoices& choices() const { return choices_; }
  /// What the user is to know, a line each.
  const std::vector<std::string>& notes() const { return notes_; }

private:
  CardAttention(const Driver& driver, const Program& program, const AttentionRequest& request)
      : driver_(&driver), program_(&program), request_(&request) {}
  void compareSaved();
  /// What the saved choices say of a call; null: nothing that is for this card.
  const std::string* savedFor(const std::string& key) const;
  Status chooseOne(uint32_t call, const AttentionPlace& place, const BitsDigest& digest,
                   CUstream stream);
  /// The first admitted one of those with the name that is wanted, or of all; null, and `why`,
  /// where there is none.
  Result<std::unique_ptr<AttentionPlan>> admit(std::span<const AttentionOffer> offers,
                                               const std::string* wanted, const LibraryCall& call,
                                               class AttentionTrial& trial, std::string& name,
                                               std::string& why) const;

  const Driver* driver_;
  const Program* program_;
  const AttentionRequest* request_; ///< read by open() and choose() alone
  std::unique_ptr<const AttentionLibrary> library_;
  std::vector<std::unique_ptr<AttentionPlan>> plans_; ///< as Program::libraryCalls; null: generated
  LibraryChoices choices_;
  std::vector<std::string> notes_;
  std::vector<std::string> refused_; ///< a call and why, each
};

} // namespace titan::cuda
