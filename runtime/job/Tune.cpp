#include "runtime/job/Tune.h"

#include "runtime/job/ProductFile.h"
#include "runtime/program/Process.h"

#include <algorithm>

namespace titan {

Status tuneJob(Session& session) {
  if (session.options().gemm == LibraryChoices::generated)
    return Error::usage("tune times the product library, and --gemm=generated does without it");
  TITAN_TRY(
      session.start(static_cast<uint64_t>(session.recipe().train.seed), {}, FirstState::Open));
  const ChosenDevice& device = session.device();
  if (device.products.library.empty())
    return Error::usage("tune is for the product library of a card, and this job {}",
                        session.program().target.kind == "cpu" ? "runs on the CPU"
                                                               : "has no products for one");
  size_t width = 7;
  for (const TunedRow& row : device.tuned)
    width = std::max(width, row.label.size());
  fmt::print("{:<{}}  {:>10}  {:>12}  {:>12}\n", "product", width, "algorithms", "first, us",
             "fastest, us");
  for (const TunedRow& row : device.tuned)
    fmt::print("{:<{}}  {:>10}  {:>12.1f}  {:>12.1f}\n", row.label, width, row.admitted,
               1e6 * row.firstSeconds, 1e6 * row.bestSeconds);
  const std::string path = tuningFileOf(session.image().executable);
  TITAN_TRY(writeProducts(path, device.products));
  tell("written: {}\n", path);
  return {};
}

} // namespace titan
