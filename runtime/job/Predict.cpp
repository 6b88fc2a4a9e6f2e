#include "runtime/job/Predict.h"

#include "runtime/data/NpzWriter.h"
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

Result<std::vector<Output>> outputsOf(const Function& predict, int64_t batch) {
  std::vector<Output> outputs;
  for (const Binding& binding : predict.bindings) {
    if (binding.role != Binding::Role::Output)
      continue;
    if (binding.shape.empty() || binding.shape[0] != batch)
      return Error::badInput(
          "output '{}' has shape {}: predict needs the {} samples of a batch in its first dim",
          binding.name, toString(binding.shape), batch);
    outputs.push_back({&binding, binding.bytes / batch});
  }
  if (outputs.empty())
    return Error::internal("predict has no outputs");
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

} // namespace

Status predictJob(Session& session) {
  std::unique_ptr<Dataset> dataset =
      TITAN_TRY(openFunctionData(session.program(), "predict", session.recipe()));
  TITAN_TRY(startForReading(session));
  Executor& executor = session.executor();
  StateAccess& access = session.access();
  Controls controls =
      TITAN_TRY(Controls::create(access, "predict", session.recipe(), session.recipe().train.seed));
  const Batches batches = TITAN_TRY(Batches::create(std::move(dataset), access, "predict"));
  const std::vector<Output> outputs =
      TITAN_TRY(outputsOf(*session.program().findFunction("predict"), batches.samples()));
  std::vector<ArrayHead> heads;
  for (const Output& output : outputs)
    heads.push_back(output.head(batches.dataset().size()));
  // What does not fit on the disk is refused before the work.
  std::unique_ptr<NpzWriter> file = TITAN_TRY(NpzWriter::create(session.options().output, heads));
  BatchLoader loader(batches.dataset(), {.micro = batches.samples(), .seed = 0, .shuffle = false});
  std::string wide;
  int64_t samples = 0;
  for (;;) {
    const int64_t rows = TITAN_TRY(batches.fillSequential(loader, samples));
    if (rows == 0)
      break;
    controls.write();
    TITAN_TRY(executor.run("predict"));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Binding& binding = *outputs[i].binding;
      const ByteSource valid = access.source(placeOf(binding)).part(0, rows * outputs[i].rowBytes);
      TITAN_TRY(valid.forEachPiece([&](std::span<const char> piece) {
        return file->append(i, binding.dtype == DType::BF16 ? widen(piece, wide) : piece);
      }));
    }
    samples += rows;
  }
  TITAN_TRY(file->finish());
  fmt::print("{} samples -> {}\n", samples, session.options().output);
  return {};
}

} // namespace titan
