// A language model made by hand: the logits of the next token are a row of a table. For the tests
// of commands that work on tokens.
#pragma once

#include "runtime/program/Program.h"

#include <span>
#include <string>

namespace titan::testing {

struct BigramShape {
  static constexpr int64_t micro = 2, window = 8;
};

/// Input "ids" [2, 8], output "logits" [2, 8, vocabulary], state "table" [vocabulary, vocabulary]
/// from the payload. step also reads "targets"; its loss is the share of targets that are not the
/// token's successor, and it learns nothing. `recipe` is TOML.
Program bigramProgram(int64_t vocabulary, const std::string& recipe = "");
std::span<const KernelFunction> bigramKernels();
/// After token v come v + 1 (logit 1) and v + 2 (logit 0.5), modulo the vocabulary; others have
/// logit -100.
std::string bigramPayload(int64_t vocabulary);
/// What a program records of its payload.
uint64_t digestOf(const std::string& payload);

} // namespace titan::testing
