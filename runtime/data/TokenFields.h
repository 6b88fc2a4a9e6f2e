// What each input of a model reads of a stream of tokens.
#pragma once

#include "runtime/data/Dataset.h"

namespace titan {

/// What a window of tokens offers; the names are those that recipe `data.fields` uses for token
/// files.
enum class TokenSource {
  Tokens,    ///< "tokens": the window
  Next,      ///< "next": the window one token later, the targets of a language model
  Positions, ///< "positions": 0, 1, 2, ...
  Ones,      ///< "ones": an attention mask that hides nothing
  Zeros,     ///< "zeros": one segment
};

/// For each field its source: by recipe `data.fields`, else the loss's target reads Next, an input
/// that is called position_ids, attention_mask or token_type_ids what that name says, and the
/// one integer input that is left Tokens. BadInput names the field when a source is unknown or
/// cannot fill its dtype, when no input reads tokens, or when several inputs are left.
Result<std::vector<TokenSource>> tokenSources(const std::vector<FieldSpec>& fields,
                                              const std::map<std::string, std::string>& mapping);

/// Writes a token, a position or a flag in the dtype of a field (F32, BF16, F64, an integer or
/// Bool).
void storeToken(DType dtype, int64_t value, char* destination);

} // namespace titan
