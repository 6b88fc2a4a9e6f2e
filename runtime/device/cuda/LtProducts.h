// The products of a program that cuBLASLt computes on a card: which ones, by which algorithms.
//
// A product takes the algorithm of the run that is continued, else that of a tuning file, else the
// first one that is admitted (ProductTrial) in the library's order. That is a function of shapes,
// library and card, so two fresh runs agree. What has none is generated.
#pragma once

#include "runtime/device/LibraryChoices.h"
#include "runtime/device/cuda/Card.h"
#include "runtime/device/cuda/ProductTrial.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace titan::cuda {

struct ProductRequest {
  enum class Mode : uint8_t {
    Generated, ///< without a library
    IfThere,   ///< by the library where it is there, else with a note
    Library,   ///< it is an error where it is not
    Tune,      ///< likewise; and the fastest algorithms are looked for
  };
  Mode mode = Mode::Generated;
  const LibraryChoices* saved = nullptr; ///< of the run that is continued; null: it is a fresh one
  int64_t savedStep = 0;                 ///< of that run
  const LibraryChoices* tuned = nullptr; ///< of a tuning file; null: there is none
  F32Products f32 = F32Products::Whole;
};

/// What `Tune` found for a product.
struct TunedProduct {
  std::string label;
  size_t admitted = 0, fastest = 0;         ///< algorithms; the fastest one's place among them
  double firstSeconds = 0, bestSeconds = 0; ///< of the one that is taken untuned; of the fastest
};

class LtProducts {
public:
  static constexpr const char* libraryName = "cublaslt";

  /// Loads the library where `request` wants it and `program` has products for it. All of these
  /// outlive the object; the card's context is current, here and later. Environment, naming the
  /// library, where it has to be there and is not.
  static Result<LtProducts> open(const Driver& driver, const Card& card, const Program& program,
                                 const ProductRequest& request);

  /// Does the library compute any product?
  bool isOpen() const { return library_ != nullptr; }
  /// Chooses the algorithms. `places` are of Program::libraryCalls; what has no `generate` is not
  /// run. Writes to them. The errors of the driver.
  Status choose(std::span<const ProductPlace> places, CUstream stream, CUevent start, CUevent end);

  /// Does the library compute Program::libraryCalls[call]?
  bool computes(uint32_t call) const { return call < chosen_.size() && chosen_[call]; }
  Answer queue(uint32_t call, std::span<const int64_t> operands, CUstream stream) const;

  const LibraryChoices& choices() const { return choices_; }
  /// What the user is to know, a line each.
  const std::vector<std::string>& notes() const { return notes_; }
  const std::vector<TunedProduct>& tuned() const { return tuned_; }

private:
  struct Chosen {
    LtProduct product;
    LtAlgorithm algorithm;
  };

  LtProducts(const Driver& driver, const Program& program, const ProductRequest& request)
      : driver_(&driver), program_(&program), request_(&request) {}
  Status load(const Card& card);
  void compareSaved();
  /// What saved and tuned choices say of a product; null: nothing that is for this card.
  const std::string* knownFor(const std::string& key) const;
  Status chooseOne(uint32_t call, const ProductPlace& place, const BitsDigest& digest,
                   CUstream stream, CUevent start, CUevent end);
  /// The first admitted one, or with Tune the fastest of the first eight; nothing, and `why`, where
  /// there is none.
  Result<std::optional<LtAlgorithm>> admit(const LtProduct& product, ProductTrial& trial,
                                           const LibraryCall& call, CUevent start, CUevent end,
                                           std::string& why);

  const Driver* driver_;
  const Program* program_;
  const ProductRequest* request_; ///< read by open() and choose() alone
  std::unique_ptr<const LtLibrary> library_;
  OwnedLt handle_;
  std::vector<std::optional<Chosen>> chosen_; ///< as Program::libraryCalls
  LibraryChoices choices_;
  std::vector<std::string> notes_;
  std::vector<TunedProduct> tuned_;
  std::vector<std::string> refused_; ///< a product and why, each
};

} // namespace titan::cuda
