#include "runtime/job/TokenPredictor.h"

#include "runtime/job/Batches.h"

#include <algorithm>
#include <cstring>

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
  Controls controls = TITAN_TRY(Controls::create(session.executor(), "predict", session.recipe(),
                                                 session.recipe().train.seed));
  TokenPredictor predictor(session, std::move(model), std::move(controls));
  // The batch's other rows keep zeros: what they compute is not read.
  for (const FieldSpec& field : predictor.model_.fields)
    std::ranges::fill(
        session.executor().bytes(*session.executor().findBinding("predict", field.name)), 0);
  return predictor;
}

void TokenPredictor::fill(size_t field, std::span<const int64_t> tokens) {
  const FieldSpec& spec = model_.fields[field];
  Executor& executor = session_->executor();
  char* address = executor.bytes(*executor.findBinding("predict", spec.name)).data();
  for (int64_t i = 0; i < model_.window; ++i) {
    const bool known = i < static_cast<int64_t>(tokens.size());
    int64_t value = 0;
    switch (model_.sources[field]) {
    case TokenSource::Tokens:
      value = known ? tokens[i] : 0;
      break;
    case TokenSource::Next: // labels do not reach the logits
    case TokenSource::Zeros:
      break;
    case TokenSource::Positions:
      value = i;
      break;
    case TokenSource::Ones:
      value = 1;
      break;
    }
    storeToken(spec.dtype, value, address + i * byteSize(spec.dtype));
  }
}

Result<std::span<const float>> TokenPredictor::next(std::span<const int64_t> tokens) {
  const auto window = static_cast<size_t>(model_.window);
  tokens = tokens.last(std::min(tokens.size(), window));
  for (size_t field = 0; field < model_.fields.size(); ++field)
    fill(field, tokens);
  controls_.write();
  Executor& executor = session_->executor();
  TITAN_TRY(executor.run("predict"));
  const int64_t first = static_cast<int64_t>(tokens.size() - 1) * model_.vocabulary;
  const int64_t bytes = byteSize(model_.output->dtype);
  const char* row = executor.bytes(*model_.output).data() + first * bytes;
  for (size_t token = 0; token < logits_.size(); ++token)
    logits_[token] = static_cast<float>(
        readScalar(model_.output->dtype, row + static_cast<int64_t>(token) * bytes));
  return std::span<const float>(logits_);
}

} // namespace titan
