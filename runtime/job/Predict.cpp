#include "runtime/job/Predict.h"

#include "runtime/data/Npz.h"
#include "runtime/job/Batches.h"
#include "runtime/job/Evaluate.h"
#include "runtime/job/Scalars.h"

#include <cstring>

namespace titan {
namespace {

/// One output of the model, gathered over the batches.
struct Gathered {
  const Binding* binding;
  int64_t rowBytes; ///< in the arena
  std::string bytes;
};

Result<std::vector<Gathered>> outputsOf(const Function& predict, int64_t batch) {
  std::vector<Gathered> outputs;
  for (const Binding& binding : predict.bindings) {
    if (binding.role != Binding::Role::Output)
      continue;
    if (binding.shape.empty() || binding.shape[0] != batch)
      return Error::badInput(
          "output '{}' has shape {}: predict needs the {} samples of a batch in its first dim",
          binding.name, toString(binding.shape), batch);
    outputs.push_back({&binding, binding.bytes / batch, {}});
  }
  if (outputs.empty())
    return Error::internal("predict has no outputs");
  return outputs;
}

/// numpy has no bf16: written as f32, exactly.
std::string widen(const std::string& bytes) {
  std::string wide(bytes.size() * 2, '\0');
  for (size_t i = 0; i < bytes.size() / 2; ++i) {
    uint16_t bits;
    std::memcpy(&bits, bytes.data() + 2 * i, 2);
    const float value = fromBFloat16(bits);
    std::memcpy(wide.data() + 4 * i, &value, 4);
  }
  return wide;
}

Status writeOutputs(const std::string& path, std::vector<Gathered>& outputs, int64_t samples) {
  std::vector<NamedArray> arrays;
  for (Gathered& output : outputs) {
    NamedArray array;
    array.name = output.binding->name;
    array.dtype = output.binding->dtype;
    array.shape = output.binding->shape;
    array.shape[0] = samples;
    if (array.dtype == DType::BF16) {
      output.bytes = widen(output.bytes);
      array.dtype = DType::F32;
    }
    array.bytes = output.bytes;
    arrays.push_back(std::move(array));
  }
  return writeNpz(path, arrays);
}

} // namespace

Status predictJob(Session& session) {
  std::unique_ptr<Dataset> dataset =
      TITAN_TRY(openFunctionData(session.program(), "predict", session.recipe()));
  TITAN_TRY(startForReading(session));
  Executor& executor = session.executor();
  Controls controls = TITAN_TRY(
      Controls::create(executor, "predict", session.recipe(), session.recipe().train.seed));
  const Batches batches = bindBatches(std::move(dataset), executor, "predict");
  std::vector<Gathered> outputs =
      TITAN_TRY(outputsOf(*session.program().findFunction("predict"), batches.samples));
  BatchLoader loader(*batches.dataset, {.batch = batches.samples, .seed = 0, .shuffle = false});
  int64_t samples = 0;
  for (;;) {
    const int64_t rows = TITAN_TRY(loader.fillSequential(samples, batches.destination));
    if (rows == 0)
      break;
    controls.write();
    TITAN_TRY(executor.run("predict"));
    for (Gathered& output : outputs)
      output.bytes.append(executor.arena() + output.binding->offset,
                          static_cast<size_t>(rows * output.rowBytes));
    samples += rows;
  }
  TITAN_TRY(writeOutputs(session.options().output, outputs, samples));
  fmt::print("{} samples -> {}\n", samples, session.options().output);
  return {};
}

} // namespace titan
