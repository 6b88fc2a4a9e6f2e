#include "runtime/job/TokenPredictor.h"

#include "runtime/job/Batches.h"

#include <algorithm>

namespace titan {
namespace {

/// What the loss reads, else the first.
const Binding* logitsOf(const Function& predict, const std::string& wanted) {
  const Binding* first = nullptr;
  for (const Binding& binding : predict.bindings) {
    if (binding.role != Binding::Role::Output)
      continue;
    if (binding.name == wanted)
      return &binding;
    first = first ? first : &binding;
  }
  return first;
}

} // namespace

Result<TokenModel> TokenModel::create(const Program& program, const Recipe& recipe) {
  const Function* predict = program.findFunction("predict");
  if (!predict)
    return Error::badInput("this job was compiled without predict");
  TokenModel model;
  model.fields = TITAN_TRY(inputFields(*predict, recipe));
  Result<std::vector<TokenSource>> sources = tokenSources(model.fields, recipe.data.fields);
  if (!sources.ok())
    return sources.takeError().withContext(fmt::format("'{}' is no language model", program.model));
  model.sources = sources.take();
  model.window = elementCount(model.fields[0].shape);
  for (const FieldSpec& field : model.fields)
    if (elementCount(field.shape) != model.window)
      return Error::badInput(
          "'{}' is no language model: its input '{}' has sample shape {}, '{}' {}", program.model,
          model.fields[0].name, toString(model.fields[0].shape), field.name, toString(field.shape));

  model.output = logitsOf(*predict, recipe.loss.output);
  if (!model.output)
    return Error::internal("predict has no outputs");
  const Shape& shape = model.output->shape;
  const auto input = std::ranges::find(predict->bindings, Binding::Role::Input, &Binding::role);
  const int64_t rows = input->shape[0] * model.window;
  const bool fits = shape.size() >= 2 && elementCount(shape) == rows * shape.back();
  const bool real = model.output->dtype == DType::F32 || model.output->dtype == DType::BF16;
  if (!fits || !real)
    return Error::badInput(
        "'{}' is no language model: output '{}' {} {} is not a row of logits for "
        "each of {} x {} tokens",
        program.model, model.output->name, name(model.output->dtype), toString(shape),
        input->shape[0], model.window);
  model.vocabulary = shape.back();
  return model;
}

TokenPredictor::TokenPredictor(Session& session, TokenModel model, Controls controls)
    : session_(&session), model_(std::move(model)), controls_(std::move(controls)),
      logits_(static_cast<size_t>(model_.vocabulary)) {}

Result<TokenPredictor> TokenPredictor::create(Session& session, TokenModel model) {
  StateAccess& access = session.access();
  Controls controls =
      TITAN_TRY(Controls::create(access, "predict", session.recipe(), session.recipe().train.seed));
  TokenPredictor predictor(session, std::move(model), std::move(controls));
  for (const FieldSpec& field : predictor.model_.fields) {
    const Place place = *access.binding("predict", field.name);
    predictor.inputs_.push_back(access.sink(place));
    // The batch's other rows keep zeros: what they compute is not read.
    TITAN_TRY(access.fill(place, 0));
  }
  return predictor;
}

Status TokenPredictor::fill(size_t field, std::span<const int64_t> tokens) {
  const DType dtype = model_.fields[field].dtype;
  const int64_t elementBytes = byteSize(dtype);
  const auto valueAt = [&](int64_t i) -> int64_t {
    switch (model_.sources[field]) {
    case TokenSource::Tokens:
      return i < static_cast<int64_t>(tokens.size()) ? tokens[i] : 0;
    case TokenSource::Next: // labels do not reach the logits
    case TokenSource::Zeros:
      return 0;
    case TokenSource::Positions:
      return i;
    case TokenSource::Ones:
      return 1;
    }
    return 0;
  };
  const ByteSink row = inputs_[field].part(0, model_.window * elementBytes);
  return row.fillPieces([&](int64_t offset, std::span<char> piece) -> Status {
    const int64_t first = offset / elementBytes;
    const int64_t count = static_cast<int64_t>(piece.size()) / elementBytes;
    for (int64_t i = 0; i < count; ++i)
      storeToken(dtype, valueAt(first + i), piece.data() + i * elementBytes);
    return {};
  });
}

Result<std::span<const float>> TokenPredictor::next(std::span<const int64_t> tokens) {
  const auto window = static_cast<size_t>(model_.window);
  tokens = tokens.last(std::min(tokens.size(), window));
  for (size_t field = 0; field < model_.fields.size(); ++field)
    TITAN_TRY(fill(field, tokens));
  controls_.write();
  TITAN_TRY(session_->executor().run("predict"));
  const DType dtype = model_.output->dtype;
  const int64_t bytes = byteSize(dtype), rowBytes = model_.vocabulary * bytes;
  const int64_t first = static_cast<int64_t>(tokens.size() - 1) * rowBytes;
  const ByteSource row = session_->access().source(placeOf(*model_.output)).part(first, rowBytes);
  auto logit = logits_.begin();
  TITAN_TRY(row.forEachPiece([&](std::span<const char> piece) -> Status {
    for (size_t at = 0; at < piece.size(); at += static_cast<size_t>(bytes))
      *logit++ = static_cast<float>(readScalar(dtype, piece.data() + at));
    return {};
  }));
  return std::span<const float>(logits_);
}

} // namespace titan
