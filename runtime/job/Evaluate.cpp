#include "runtime/job/Evaluate.h"

#include "runtime/job/Resume.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace titan {

Evaluator::Evaluator(Session& session, Batches batches, Controls controls)
    : session_(&session), batches_(std::move(batches)), controls_(std::move(controls)),
      validRows_(session.executor().findBinding("eval", "valid_rows")),
      lossSum_(ScalarReader::metric(session.executor(), "eval", "loss_sum")),
      count_(ScalarReader::metric(session.executor(), "eval", "count")),
      correct_(ScalarReader::metric(session.executor(), "eval", "correct")) {}

Result<Evaluator> Evaluator::create(Session& session, std::unique_ptr<Dataset> dataset) {
  Controls controls = TITAN_TRY(
      Controls::create(session.executor(), "eval", session.recipe(), session.recipe().train.seed));
  Batches batches = bindBatches(std::move(dataset), session.executor(), "eval");
  return Evaluator(session, std::move(batches), std::move(controls));
}

Result<Evaluation> Evaluator::run(int64_t maxBatches) {
  Executor& executor = session_->executor();
  // A loss that the model computes itself cannot be told which rows are padding.
  const bool masks = validRows_ && session_->recipe().loss.kind != "output";
  const Dataset& dataset = *batches_.dataset;
  BatchLoader loader(dataset, {.batch = batches_.samples, .seed = 0, .shuffle = false});
  Evaluation result;
  double loss = 0, count = 0, correct = 0;
  for (int64_t batch = 0; maxBatches == 0 || batch < maxBatches; ++batch) {
    const int64_t rows =
        TITAN_TRY(loader.fillSequential(batch * batches_.samples, batches_.destination));
    if (rows == 0)
      break;
    if (rows < batches_.samples && !masks) {
      result.dropped = rows;
      break;
    }
    controls_.write();
    if (validRows_)
      writeScalar(validRows_->dtype, executor.arena() + validRows_->offset, rows);
    TITAN_TRY(executor.run("eval"));
    loss += lossSum_.read();
    count += count_.read();
    correct += correct_.read();
    result.samples += rows;
  }
  if (count == 0)
    return Error::badInput(
        "the evaluation data has no valid target in {} samples (batch {}): give more data",
        dataset.size(), batches_.samples);
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
  const int64_t step = ScalarReader::counter(session.executor(), "step").count();
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
