// What models of text have in common.
#pragma once

#include "frontend/nn/Layers.h"
#include "frontend/nn/Models.h"

namespace titan::nn {

/// `input_ids` [batch, model.dims.seq], of `positions` tokens where the recipe binds no `seq`. No
/// value, after an error, if they are more.
Tensor tokenInput(Model& model, int64_t positions);

/// A table [rows, width] `weight` of tokens. Where the head is tied, it is `lm_head.weight`, too.
Tensor tokenTable(const Scope& scope, int64_t rows, int64_t width, Init init, bool tied);

/// AdamW with a warm-up and a cosine, as language models are trained.
void suggestForText(Recipe& recipe, const OptionValues& options, double lr,
                    std::vector<std::string> noDecay);

} // namespace titan::nn
