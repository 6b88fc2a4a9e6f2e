#include "runtime/job/Evaluate.h"

#include "runtime/job/Resume.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace titan {

Result<Evaluator> Evaluator::create(Session& session, std::unique_ptr<Dataset> dataset) {
  StateAccess& access = session.access();
  Evaluator evaluator(session);
  evaluator.controls_ =
      TITAN_TRY(Controls::create(access, "eval", session.recipe(), session.recipe().train.seed));
  evaluator.batches_ = TITAN_TRY(Batches::create(std::move(dataset), access, "eval"));
  if (const std::optional<Place> place = access.binding("eval", "valid_rows"))
    evaluator.validRows_ = TITAN_TRY(access.scalar(*place));
  evaluator.lossSum_ = TITAN_TRY(metric(access, "eval", "loss_sum"));
  evaluator.count_ = TITAN_TRY(metric(access, "eval", "count"));
  evaluator.correct_ = TITAN_TRY(metric(access, "eval", "correct"));
  return evaluator;
}

Result<Evaluation> Evaluator::run(int64_t maxBatches) {
  Executor& executor = session_->executor();
  // A loss that the model computes itself cannot be told which rows are padding.
  const bool masks = validRows_.exists() && session_->recipe().loss.kind != "output";
  const Dataset& dataset = batches_.dataset();
  BatchLoader loader(dataset, {.micro = batches_.samples(), .seed = 0, .shuffle = false});
  Evaluation result;
  double loss = 0, count = 0, correct = 0;
  for (int64_t batch = 0; maxBatches == 0 || batch < maxBatches; ++batch) {
    const int64_t rows = TITAN_TRY(batches_.fillSequential(loader, batch * batches_.samples()));
    if (rows == 0)
      break;
    if (rows < batches_.samples() && !masks) {
      result.dropped = rows;
      break;
    }
    controls_.write();
    if (validRows_.exists())
      validRows_.write(rows);
    TITAN_TRY(executor.run("eval"));
    loss += lossSum_.read();
    count += count_.read();
    correct += correct_.read();
    result.samples += rows;
  }
  if (count == 0)
    return Error::badInput(
        "the evaluation data has no valid target in {} samples (batch {}): give more data",
        dataset.size(), batches_.samples());
  result.loss = loss / count;
  if (dataset.tokensPerSample() > 0)
    result.perplexity = std::exp(result.loss);
  else if (correct_.exists())
    result.accuracy = correct / count;
  return result;
}

Status startForReading(Session& session) {
  Start start = TITAN_TRY(chooseForReading(session.options()));
  const uint64_t seed = start.manifest ? start.manifest->data.seed : session.recipe().train.seed;
  TITAN_TRY(session.start(seed, start.gemm(session.program().target.kind)));
  if (start.checkpoint.empty())
    return {};
  if (start.newest) {
    TITAN_TRY(checkpoint::loadLatest(session.options().out, session.loadRequest()));
    return {};
  }
  TITAN_TRY(checkpoint::load(start.checkpoint, session.loadRequest()));
  return {};
}

Status evaluateJob(Session& session) {
  std::unique_ptr<Dataset> dataset =
      TITAN_TRY(openFunctionData(session.program(), "eval", session.recipe()));
  TITAN_TRY(startForReading(session));
  Evaluator evaluator = TITAN_TRY(Evaluator::create(session, std::move(dataset)));
  const Evaluation result = TITAN_TRY(evaluator.run(0));
  const int64_t step = TITAN_TRY(counter(session.access(), "step")).count();
  if (session.options().json) {
    nlohmann::ordered_json json = {{"step", step}, {"loss", result.loss}};
    if (result.accuracy)
      json["accuracy"] = *result.accuracy;
    if (result.perplexity)
      json["perplexity"] = *result.perplexity;
    json["samples"] = result.samples;
    fmt::print("{}\n", json.dump());
  } else {
    fmt::print("step {}  loss {:.6g}", step, result.loss);
    if (result.accuracy)
      fmt::print("  accuracy {:.4f}", *result.accuracy);
    if (result.perplexity)
      fmt::print("  perplexity {:.6g}", *result.perplexity);
    fmt::print("  samples {}\n", result.samples);
  }
  if (result.dropped > 0)
    printNote(
        fmt::format("the last {} samples do not fill a batch and were left out", result.dropped));
  return {};
}

} // namespace titan
