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

  /// Samples in file order, at most `maxBatches` batches (0: all). Batch b is done by rank b modulo
  /// their number; every rank runs as many and has the same result, which is that of one rank.
  Result<Evaluation> run(int64_t maxBatches);

private:
  /// What one batch adds; f32 and integers, which a double holds.
  struct Sums {
    double loss = 0, count = 0, correct = 0;
    double weight = 0; ///< what the loss is divided by
    int64_t rows = 0, dropped = 0;
  };

  explicit Evaluator(Session& session) : session_(&session) {}
  /// Samples [first, first + samples()), as far as there are some.
  Result<Sums> runBatch(const BatchLoader& loader, int64_t first);
  /// Of all ranks, in the order of the batches.
  Result<std::vector<Sums>> gather(const std::vector<Sums>& mine);

  Session* session_;
  Batches batches_;
  Controls controls_;
  Scalar validRows_, lossSum_, count_, correct_;
  Scalar weightSum_; ///< where the classes have weights
  bool notedDropped_ = false;
};

/// `./job eval`
Status evaluateJob(Session& session);
/// Starts the session from --ckpt or the newest checkpoint of the run directory, with the averages
/// that --ema names: for what reads a model.
Status startForReading(Session& session);

} // namespace titan
