#include "runtime/job/Predict.h"

#include "runtime/data/NpzWriter.h"
#include "runtime/job/Agreement.h"
#include "runtime/job/Batches.h"
#include "runtime/job/Evaluate.h"
#include "runtime/job/Scalars.h"

#include <cstring>

namespace titan {
namespace {

/// One output of the model.
struct Output {
  const Binding* binding;
  int64_t rowBytes; ///< on the device

  /// What the file holds of it. numpy has no bf16: written as f32, exactly.
  ArrayHead head(int64_t samples) const {
    ArrayHead head{binding->name, binding->dtype, binding->shape};
    head.shape[0] = samples;
    if (head.dtype == DType::BF16)
      head.dtype = DType::F32;
    return head;
  }
};

/// The outputs that have a row for each sample. Others, such as a loss, are left out with a note.
Result<std::vector<Output>> outputsOf(const Session& session, int64_t batch) {
  std::vector<Output> outputs;
  std::vector<std::string> others;
  for (const Binding& binding : session.program().findFunction("predict")->bindings) {
    if (binding.role != Binding::Role::Output)
      continue;
    if (!binding.shape.empty() && binding.shape[0] == batch)
      outputs.push_back({&binding, binding.bytes / batch});
    else
      others.push_back(fmt::format("'{}' of shape {}", binding.name, toString(binding.shape)));
  }
  if (outputs.empty())
    return Error::badInput("no output has the {} samples of a batch in its first dim: {}", batch,
                           fmt::join(others, ", "));
  if (!others.empty())
    session.note(fmt::format("left out, without the {} samples of a batch in the first dim: {}",
                             batch, fmt::join(others, ", ")));
  return outputs;
}

/// bf16 values as f32, in `wide`.
std::span<const char> widen(std::span<const char> bytes, std::string& wide) {
  wide.resize(bytes.size() * 2);
  for (size_t i = 0; i < bytes.size() / 2; ++i) {
    uint16_t bits;
    std::memcpy(&bits, bytes.data() + 2 * i, 2);
    const float value = fromBFloat16(bits);
    std::memcpy(wide.data() + 4 * i, &value, 4);
  }
  return wide;
}

/// The first `rows` rows of output number `i` of every rank's batch, in the order of the ranks.
Status append(Session& session, const Output& output, int64_t rows, size_t i, NpzWriter* file) {
  Peers& peers = session.peers();
  StateAccess& access = session.access();
  const ByteSource valid = access.source(placeOf(*output.binding)).part(0, rows * output.rowBytes);
  std::string wide;
  const auto write = [&](std::span<const char> piece) {
    return file->append(i, output.binding->dtype == DType::BF16 ? widen(piece, wide) : piece);
  };
  if (peers.isAlone())
    return valid.forEachPiece(write);
  std::string mine;
  TITAN_TRY(valid.forEachPiece([&](std::span<const char> piece) -> Status {
    mine.append(piece.data(), piece.size());
    return {};
  }));
  for (const std::string& part : TITAN_TRY(peers.exchange("the outputs of a batch", mine)))
    if (file)
      TITAN_TRY(write(part));
  return {};
}

/// Samples that depend on each other have others' outputs in a last batch with padding.
void noteJoinedSamples(const Session& session, StateAccess& access, int64_t samples, int64_t rows) {
  const bool areJoined =
      access.program().findFunction("eval") && !access.binding("eval", "valid_rows");
  if (areJoined && samples % rows != 0)
    session.note(fmt::format("the model computes with a batch of {} as a whole, and the outputs of "
                             "the last {} samples are those beside rows of zeros",
                             rows, samples % rows));
}

} // namespace

Status predictJob(Session& session) {
  Peers& peers = session.peers();
  std::unique_ptr<Dataset> dataset = TITAN_TRY(
      peers.agree("the data", openFunctionData(session.program(), "predict", session.recipe())));
  TITAN_TRY(agreeOnData(peers, "data.eval", *dataset));
  TITAN_TRY(startForReading(session));
  Executor& executor = session.executor();
  StateAccess& access = session.access();
  Controls controls =
      TITAN_TRY(Controls::create(access, "predict", session.recipe(), session.recipe().train.seed));
  const Batches batches = TITAN_TRY(Batches::create(std::move(dataset), access, "predict"));
  const std::vector<Output> outputs = TITAN_TRY(outputsOf(session, batches.samples()));
  std::vector<ArrayHead> heads;
  for (const Output& output : outputs)
    heads.push_back(output.head(batches.dataset().size()));
  // What does not fit on the disk is refused before the work.
  std::unique_ptr<NpzWriter> file = TITAN_TRY(peers.byFirst(
      "the output file", [&] { return NpzWriter::create(session.options().output, heads); }));
  const BatchLoader loader(batches.dataset(), {.micro = batches.samples(), .shuffle = false});
  const int64_t samples = batches.dataset().size(), rows = batches.samples();
  noteJoinedSamples(session, access, samples, rows);
  // Each rank computes a batch of every round, and rank 0 writes them in order.
  for (int64_t round = 0; round < samples; round += rows * peers.count()) {
    const int64_t valid = TITAN_TRY(batches.fillSequential(loader, round + peers.rank() * rows));
    controls.write();
    TITAN_TRY(executor.run("predict"));
    for (size_t i = 0; i < outputs.size(); ++i)
      TITAN_TRY(append(session, outputs[i], valid, i, file.get()));
  }
  TITAN_TRY(peers.byFirst("the output file", [&] { return file->finish(); }));
  if (peers.isFirst())
    fmt::print("{} samples -> {}\n", samples, session.options().output);
  return {};
}

} // namespace titan
