#include "runtime/device/cuda/LtProducts.h"

#include "runtime/program/CardProducts.h"

#include <algorithm>

namespace titan::cuda {
namespace {

using Mode = ProductRequest::Mode;

/// Algorithms that the library is asked for, and admitted ones that are timed.
constexpr int mostAlgorithms = 32, mostTimed = 8;

bool hasProducts(const Program& program) {
  return std::ranges::any_of(program.libraryCalls,
                             [](const LibraryCall& call) { return suitsCardLibrary(call); });
}

/// As the driver would answer: a card that failed is told from a product that the library refuses.
CUresult resultOf(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS:
    return CUDA_SUCCESS;
  case CUBLAS_STATUS_ALLOC_FAILED:
    return CUDA_ERROR_OUT_OF_MEMORY;
  case CUBLAS_STATUS_EXECUTION_FAILED:
  case CUBLAS_STATUS_INTERNAL_ERROR:
  case CUBLAS_STATUS_MAPPING_ERROR:
    return CUDA_ERROR_UNKNOWN;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

Answer answerOf(cublasStatus_t status) {
  switch (status) {
#define TITAN_CUBLAS_ANSWER(name, value)                                                           \
  case name:                                                                                       \
    return {resultOf(status), "cublasLtMatmul (" #name ")"};
    TITAN_CUBLAS_STATUSES(TITAN_CUBLAS_ANSWER)
#undef TITAN_CUBLAS_ANSWER
  }
  return {CUDA_ERROR_UNKNOWN, "cublasLtMatmul"};
}

} // namespace

Result<LtProducts> LtProducts::open(const Driver& driver, const Card& card, const Program& program,
                                    const ProductRequest& request) {
  LtProducts products(driver, program, request);
  if (request.mode == Mode::Generated || !hasProducts(program))
    return products;
  Status loaded = products.load(card);
  if (loaded.ok()) {
    products.compareSaved();
    return products;
  }
  if (request.mode != Mode::IfThere)
    return loaded.takeError();
  LtProducts without(driver, program, request);
  without.notes_.push_back("products are generated: " + loaded.error().message());
  return without;
}

Status LtProducts::load(const Card& card) {
  library_ = std::make_unique<const LtLibrary>(TITAN_TRY(LtLibrary::load()));
  cublasLtHandle_t handle = nullptr;
  // A library that is newer than its driver says no more than that.
  if (Status created = library_->need(library_->cublasLtCreate(&handle), "cublasLtCreate");
      !created.ok())
    return Error::environment("{}; the driver is for CUDA {}", created.error().message(),
                              versionText(driver_->version()));
  handle_ = OwnedLt(*library_, handle);
  choices_.library = libraryName;
  choices_.version = library_->version();
  choices_.device = fmt::format("{}, {}", card.name, card.capability.arch());
  return {};
}

void LtProducts::compareSaved() {
  const LibraryChoices *saved = request_->saved, *tuned = request_->tuned;
  if (saved && saved->library == libraryName && !saved->fit(choices_))
    notes_.push_back(
        fmt::format("the run's products were chosen for {}, and here is {}: they are chosen anew, "
                    "and the bits may differ from step {} on",
                    saved->text(), choices_.text(), request_->savedStep + 1));
  if (tuned && !tuned->fit(choices_))
    notes_.push_back(fmt::format("the tuning file is for {}, and here is {}: products are chosen "
                                 "anew; `tune` makes another file",
                                 tuned->text(), choices_.text()));
}

const std::string* LtProducts::knownFor(const std::string& key) const {
  if (request_->mode == Mode::Tune)
    return nullptr;
  for (const LibraryChoices* known : {request_->saved, request_->tuned}) {
    const std::string* found = known ? known->find(key, choices_) : nullptr;
    if (found)
      return found;
  }
  return nullptr;
}

Status LtProducts::choose(std::span<const ProductPlace> places, CUstream stream, CUevent start,
                          CUevent end) {
  if (!isOpen())
    return {};
  chosen_.resize(places.size());
  Result<BitsDigest> made = BitsDigest::create(*driver_);
  if (!made.ok()) {
    if (request_->mode != Mode::IfThere)
      return made.takeError();
    notes_.push_back("products are generated, since the library's cannot be tested: " +
                     made.error().message());
    return {};
  }
  const BitsDigest digest = made.take();
  for (uint32_t call = 0; call < places.size(); ++call)
    if (places[call].generate && suitsCardLibrary(program_->libraryCalls[call]))
      TITAN_TRY(chooseOne(call, places[call], digest, stream, start, end));
  if (!refused_.empty())
    notes_.push_back(fmt::format("{} of {} products are generated, since {} {} does not compute "
                                 "them: {}",
                                 refused_.size(), choices_.algorithms.size(), libraryName,
                                 choices_.version, refused_.front()));
  return {};
}

Status LtProducts::chooseOne(uint32_t index, const ProductPlace& place, const BitsDigest& digest,
                             CUstream stream, CUevent start, CUevent end) {
  const LibraryCall& call = program_->libraryCalls[index];
  const ProductAlignments alignments = ProductAlignments::of(*program_, index);
  const std::string key = keyOf(call, alignments, request_->f32);
  const auto generate = [&](const std::string& why) {
    choices_.algorithms[key] = LibraryChoices::generated;
    if (!why.empty())
      refused_.push_back(fmt::format("'{}': {}", call.label, why));
  };
  const std::string* known = knownFor(key);
  if (known && *known == LibraryChoices::generated) {
    generate("");
    return {};
  }
  Result<LtProduct> product =
      LtProduct::create(*library_, handle_.get(), call, alignments, request_->f32);
  if (!product.ok()) {
    generate(product.error().message());
    return {};
  }
  std::optional<LtAlgorithm> algorithm;
  if (const auto bytes = known ? algorithmOf(*known) : std::nullopt)
    algorithm = product->check(*bytes);
  if (known && !algorithm)
    notes_.push_back(fmt::format("{} {} does not take the saved algorithm of '{}': another one is "
                                 "chosen, and the bits may differ",
                                 libraryName, choices_.version, call.label));
  if (!algorithm) {
    ProductTrial trial(*driver_, digest, stream, call.gemm, request_->f32, *library_, *product,
                       place);
    std::string why = "it knows no algorithm";
    algorithm = TITAN_TRY(admit(*product, trial, call, start, end, why));
    if (!algorithm) {
      generate(why);
      return {};
    }
  }
  choices_.algorithms[key] = hexOf(algorithm->bytes);
  chosen_[index].emplace(Chosen{product.take(), *algorithm});
  return {};
}

Result<std::optional<LtAlgorithm>> LtProducts::admit(const LtProduct& product, ProductTrial& trial,
                                                     const LibraryCall& call, CUevent start,
                                                     CUevent end, std::string& why) {
  std::optional<LtAlgorithm> best;
  TunedProduct tuned;
  tuned.label = call.label;
  for (const LtAlgorithm& algorithm : product.algorithms(mostAlgorithms)) {
    if (std::string refusal = TITAN_TRY(trial.refusal(algorithm)); !refusal.empty()) {
      why = std::move(refusal);
      continue;
    }
    if (request_->mode != Mode::Tune)
      return std::optional(algorithm);
    const double seconds = TITAN_TRY(trial.seconds(algorithm, start, end));
    if (!best)
      tuned.firstSeconds = seconds;
    if (!best || seconds < tuned.bestSeconds) {
      best = algorithm;
      tuned.bestSeconds = seconds;
      tuned.fastest = tuned.admitted;
    }
    if (++tuned.admitted == mostTimed)
      break;
  }
  if (best)
    tuned_.push_back(std::move(tuned));
  return best;
}

Answer LtProducts::queue(uint32_t call, std::span<const int64_t> operands, CUstream stream) const {
  const Chosen& chosen = *chosen_[call];
  const ProductAddresses place = ProductAddresses::of(program_->libraryCalls[call], operands);
  return answerOf(chosen.product.queue(chosen.algorithm, place, stream));
}

} // namespace titan::cuda
