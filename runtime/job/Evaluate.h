// Loss and accuracy over a whole data set: the command `eval`, and the evaluations during training.
#pragma once

#include "runtime/job/Batches.h"
#include "runtime/job/Scalars.h"
#include "runtime/job/Session.h"

#include <optional>

namespace titan {

struct Evaluation {
  double loss = 0; ///< mean over the valid targets; for loss kind "output" over the batches
  std::optional<double> accuracy;   ///< of classes
  std::optional<double> perplexity; ///< of tokens: exp(loss)
  int64_t samples = 0;              ///< evaluated
  int64_t dropped = 0;              ///< of a last batch that could not be masked
};

class Evaluator {
public:
  /// `session` has been started and outlives the evaluator.
  static Result<Evaluator> create(Session& session, std::unique_ptr<Dataset> dataset);

  /// Samples in file order, at most `maxBatches` batches (0: all).
  Result<Evaluation> run(int64_t maxBatches);

private:
  explicit Evaluator(Session& session) : session_(&session) {}

  Session* session_;
  Batches batches_;
  Controls controls_;
  Scalar validRows_, lossSum_, count_, correct_;
};

/// `./job eval`
Status evaluateJob(Session& session);
/// Starts the session from --ckpt or the newest checkpoint of the run directory, for eval and
/// predict.
Status startForReading(Session& session);

} // namespace titan
