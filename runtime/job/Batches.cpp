#include "runtime/job/Batches.h"

#include "runtime/program/Collective.h"
#include "runtime/program/Microbatches.h"

#include <algorithm>
#include <set>

namespace titan {
namespace {

size_t leadingDims(const Function& function) { return function.name == "step" ? 2 : 1; }

/// Of one batch whose input has `shape`.
int64_t samplesOf(const Function& function, const Shape& shape) {
  return elementCount(std::span(shape).first(leadingDims(function)));
}

/// A field of data.fields that no function reads is a typo.
Status checkFieldNames(const Program& program, const Recipe& recipe) {
  std::set<std::string> inputs;
  for (const Function& function : program.functions)
    for (const Binding& binding : function.bindings)
      if (binding.role == Binding::Role::Input)
        inputs.insert(binding.name);
  for (const auto& [field, array] : recipe.data.fields)
    if (!inputs.contains(field))
      return Error::badInput("data.fields: the job reads no '{}'; it reads: {}", field,
                             fmt::join(inputs, ", "));
  return {};
}

/// Fewer samples than one step takes would put one sample into a batch twice.
Status checkEnough(const Dataset& dataset, const std::vector<std::string>& files,
                   const Function& step) {
  const auto input = std::ranges::find(step.bindings, Binding::Role::Input, &Binding::role);
  const int64_t batch = samplesOf(step, input->shape);
  if (dataset.size() >= batch)
    return {};
  return Error::badInput("{}: {} samples are too few for batch.global = {}: give more data or "
                         "compile with a smaller batch",
                         fmt::join(files, ", "), dataset.size(), batch);
}

} // namespace

LoaderOptions loaderOptions(const Batches& batches, const Recipe& recipe, int64_t rank) {
  const MicrobatchOrder order = microbatchOrder(recipe, coordinatesOf(rank, recipe.mesh.axes));
  return {.micro = batches.samples() / batches.microbatches(),
          .microbatches = batches.microbatches(),
          .first = order.first,
          .stride = order.stride,
          .globalBatch = batches.globalSamples(),
          .seed = static_cast<uint64_t>(recipe.train.seed),
          .shuffle = recipe.data.shuffle};
}

Result<std::vector<FieldSpec>> inputFields(const Function& function, const Recipe& recipe) {
  std::vector<FieldSpec> fields;
  int64_t samples = 0;
  for (const Binding& binding : function.bindings) {
    if (binding.role != Binding::Role::Input)
      continue;
    if (binding.shape.size() < leadingDims(function))
      return Error::internal("input '{}' of {} has shape {}, without its batch dims", binding.name,
                             function.name, toString(binding.shape));
    const int64_t own = samplesOf(function, binding.shape);
    if (samples != 0 && own != samples)
      return Error::internal("input '{}' of {} has {} samples, the one before has {}", binding.name,
                             function.name, own, samples);
    samples = own;
    FieldSpec field;
    field.name = binding.name;
    field.dtype = binding.dtype;
    field.shape.assign(binding.shape.begin() + leadingDims(function), binding.shape.end());
    field.classes = binding.classes;
    field.runs = binding.runs;
    field.target = binding.name == recipe.loss.target;
    // Only a target may say "no label here"; an index into a table may not.
    field.ignoreIndex = field.target ? recipe.loss.ignoreIndex : 0;
    fields.push_back(std::move(field));
  }
  if (fields.empty())
    return Error::internal("function {} has no inputs", function.name);
  return fields;
}

Result<std::unique_ptr<Dataset>> openFunctionData(const Program& program, std::string_view name,
                                                  const Recipe& recipe) {
  const Function* function = program.findFunction(name);
  if (!function)
    return Error::badInput("this job was compiled without {}", name);
  const bool training = name == "step";
  const std::vector<std::string>& files = training ? recipe.data.train : recipe.data.eval;
  if (files.empty())
    return Error::badInput("no data: give files by --data, or {} in the recipe",
                           training ? "data.train" : "data.eval");
  TITAN_TRY(checkFieldNames(program, recipe));
  std::unique_ptr<Dataset> dataset =
      TITAN_TRY(openDataset(files, recipe.data, TITAN_TRY(inputFields(*function, recipe))));
  if (training)
    TITAN_TRY(checkEnough(*dataset, files, *function));
  return dataset;
}

Result<Batches> Batches::create(std::unique_ptr<Dataset> dataset, StateAccess& access,
                                std::string_view name) {
  Batches batches;
  const Function& function = *access.program().findFunction(name);
  bool direct = true;
  for (const FieldSpec& field : dataset->fields()) {
    const Binding& binding = *std::ranges::find(function.bindings, field.name, &Binding::name);
    const ByteSink& sink = batches.sinks_.emplace_back(access.sink(placeOf(binding)));
    batches.destination_.push_back(sink.direct().data());
    direct = direct && !sink.direct().empty();
    batches.samples_ = samplesOf(function, binding.local);
    batches.microbatches_ = function.name == "step" ? binding.local[0] : 1;
    batches.globalSamples_ = samplesOf(function, binding.shape);
  }
  if (!direct) {
    const int64_t bytes = BatchSlot::bytesFor(*dataset, batches.samples_);
    batches.slot_.emplace(*dataset, batches.samples_, TITAN_TRY(access.hostBuffer(bytes)));
    batches.destination_.assign(batches.slot_->destination().begin(),
                                batches.slot_->destination().end());
  }
  batches.dataset_ = std::move(dataset);
  return batches;
}

Status Batches::fill(const BatchLoader& loader, uint64_t position) const {
  TITAN_TRY(loader.fill(position, destination_));
  return send();
}

Result<int64_t> Batches::fillSequential(const BatchLoader& loader, int64_t first) const {
  const int64_t rows = TITAN_TRY(loader.fillSequential(first, destination_));
  TITAN_TRY(send());
  return rows;
}

Status Batches::send() const { return slot_ ? slot_->copyTo(sinks_) : Status(); }

} // namespace titan
