// The function `predict` of a language model as what follows a sequence of tokens.
#pragma once

#include "runtime/data/TokenFields.h"
#include "runtime/job/Scalars.h"
#include "runtime/job/Session.h"

#include <span>
#include <vector>

namespace titan {

/// Whether the job is a language model, from its table alone.
struct TokenModel {
  std::vector<FieldSpec> fields; ///< the inputs of predict
  std::vector<TokenSource> sources;
  const Binding* output = nullptr; ///< logits, f32 or bf16
  int64_t window = 0;              ///< tokens that predict sees
  int64_t vocabulary = 0;

  /// BadInput when predict reads no tokens, or its output is not a row of logits for each of them.
  static Result<TokenModel> create(const Program& program, const Recipe& recipe);
};

class TokenPredictor {
public:
  /// `session` has been started and outlives the predictor.
  static Result<TokenPredictor> create(Session& session, TokenModel model);

  /// The logits [vocabulary] of the token after `tokens` (not empty), of which the last `window`
  /// count. Shorter sequences stand at the window's start and zeros behind them, which a causal
  /// model does not see. Valid until the next call.
  Result<std::span<const float>> next(std::span<const int64_t> tokens);

private:
  TokenPredictor(Session& session, TokenModel model, Controls controls);
  /// Writes the first row of one input.
  Status fill(size_t field, std::span<const int64_t> tokens);

  Session* session_;
  TokenModel model_;
  Controls controls_;
  std::vector<ByteSink> inputs_;
  std::vector<float> logits_;
};

} // namespace titan
