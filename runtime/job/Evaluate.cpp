#include "runtime/job/Evaluate.h"

#include "runtime/job/Agreement.h"
#include "runtime/job/Averages.h"
#include "runtime/job/Resume.h"
#include "runtime/program/Process.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

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
  evaluator.weightSum_ = TITAN_TRY(metric(access, "eval", "weight_sum"));
  return evaluator;
}

Result<Evaluator::Sums> Evaluator::runBatch(const BatchLoader& loader, int64_t first) {
  // A loss that the model computes itself cannot be told which rows are padding, and samples that
  // depend on each other would be others beside it: then @eval has no valid_rows.
  const bool masks = validRows_.exists() && session_->recipe().loss.kind != "output";
  const int64_t rows = TITAN_TRY(batches_.fillSequential(loader, first));
  const bool counts = rows == batches_.samples() || (rows > 0 && masks);
  // Ranks take part in a batch that does not count, as the others may wait for them.
  if (!counts && session_->peers().isAlone())
    return Sums{.dropped = rows};
  controls_.write();
  if (validRows_.exists())
    validRows_.write(rows);
  TITAN_TRY(session_->executor().run("eval"));
  noteProgress();
  if (!counts)
    return Sums{.dropped = rows};
  const double count = count_.read();
  return Sums{lossSum_.read(),
              count,
              correct_.read(),
              weightSum_.exists() ? weightSum_.read() : count,
              rows,
              0};
}

Result<std::vector<Evaluator::Sums>> Evaluator::gather(const std::vector<Sums>& mine) {
  static_assert(std::is_trivially_copyable_v<Sums>);
  const std::string_view bytes(reinterpret_cast<const char*>(mine.data()),
                               mine.size() * sizeof(Sums));
  const std::vector<std::string> all =
      TITAN_TRY(session_->peers().exchange("the sums of the evaluation", bytes));
  std::vector<Sums> sums(all.size() * mine.size());
  for (size_t i = 0; i < sums.size(); ++i)
    std::memcpy(&sums[i], all[i % all.size()].data() + i / all.size() * sizeof(Sums), sizeof(Sums));
  return sums;
}

Result<Evaluation> Evaluator::run(int64_t maxBatches) {
  const Dataset& dataset = batches_.dataset();
  const int64_t rows = batches_.samples(), ranks = session_->peers().count();
  const BatchLoader loader(dataset, {.micro = rows, .shuffle = false});
  const int64_t there = (dataset.size() + rows - 1) / rows;
  const int64_t batches = maxBatches == 0 ? there : std::min(there, maxBatches);
  std::vector<Sums> mine;
  for (int64_t batch = session_->peers().rank(); batch < (batches + ranks - 1) / ranks * ranks;
       batch += ranks)
    mine.push_back(TITAN_TRY(runBatch(loader, batch < batches ? batch * rows : dataset.size())));

  Evaluation result;
  double loss = 0, count = 0, correct = 0, weight = 0;
  for (const Sums& batch : TITAN_TRY(gather(mine))) {
    loss += batch.loss;
    count += batch.count;
    correct += batch.correct;
    weight += batch.weight;
    result.samples += batch.rows;
    result.dropped += batch.dropped;
  }
  if (count == 0 || weight == 0)
    return session_->peers().together(Error::badInput(
        "the evaluation data has no valid target in {} samples (batch {}): give more data",
        dataset.size(), batches_.samples()));
  result.loss = loss / weight;
  if (result.dropped > 0 && !std::exchange(notedDropped_, true))
    session_->note(
        fmt::format("the last {} samples do not fill a batch and were left out", result.dropped));
  if (dataset.tokensPerSample() > 0)
    result.perplexity = std::exp(result.loss);
  else if (correct_.exists() && session_->recipe().loss.kind == "cross_entropy")
    result.accuracy = correct / count; // of other losses @eval counts 0
  return result;
}

Status startForReading(Session& session) {
  Peers& peers = session.peers();
  const Start start =
      TITAN_TRY(chooseTogether(peers, [&] { return chooseForReading(session.options()); }));
  const uint64_t seed = start.manifest ? start.manifest->data.seed : session.recipe().train.seed;
  TITAN_TRY(session.start(seed, start.products(session.program().target.kind), start.firstState()));
  const JobOptions& options = session.options();
  std::optional<checkpoint::LoadReport> report;
  if (!start.checkpoint.empty())
    report = TITAN_TRY(start.load(options.out, requestForReading(session, start.manifest)));
  if (options.average.empty())
    return {};
  return useAverages(session, options.average, report ? &report->manifest : nullptr);
}

namespace {

void printEvaluation(const Session& session, int64_t step, const Evaluation& result) {
  if (session.options().json) {
    nlohmann::ordered_json json = {{"step", step}, {"loss", result.loss}};
    if (result.accuracy)
      json["accuracy"] = *result.accuracy;
    if (result.perplexity)
      json["perplexity"] = *result.perplexity;
    json["samples"] = result.samples;
    fmt::print("{}\n", json.dump());
    return;
  }
  fmt::print("step {}  loss {:.6g}", step, result.loss);
  if (result.accuracy)
    fmt::print("  accuracy {:.4f}", *result.accuracy);
  if (result.perplexity)
    fmt::print("  perplexity {:.6g}", *result.perplexity);
  fmt::print("  samples {}\n", result.samples);
}

} // namespace

Status evaluateJob(Session& session) {
  std::unique_ptr<Dataset> dataset = TITAN_TRY(session.peers().agree(
      "the data", openFunctionData(session.program(), "eval", session.recipe())));
  TITAN_TRY(agreeOnData(session.peers(), "data.eval", *dataset));
  TITAN_TRY(startForReading(session));
  Evaluator evaluator = TITAN_TRY(Evaluator::create(session, std::move(dataset)));
  const Evaluation result = TITAN_TRY(evaluator.run(0));
  const int64_t step = TITAN_TRY(counter(session.access(), "step")).count();
  if (session.peers().isFirst())
    printEvaluation(session, step, result);
  return {};
}

} // namespace titan
