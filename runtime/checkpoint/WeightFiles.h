// Weights as other programs write them, and as checkpoints have them: the one list of forms that
// `--init` and imports take.
//
//   W.safetensors                    one file
//   model.safetensors.index.json     of Hugging Face: each tensor's file, all beside it
//   DIR                              that index or, without one, all .safetensors files of DIR;
//                                    those that torch.distributed.checkpoint writes in this form
//                                    have pieces, which are put together
//   DIR/step-00000100                a checkpoint: its parameters and buffers
#pragma once

#include "runtime/checkpoint/LoadBlocks.h"

namespace titan::checkpoint {

/// Opens and checks what lies at `path`. BadInput: missing, damaged, none of the forms, or a
/// pickle, of which the error says what converts it.
Result<StoredTensors> openWeights(const std::string& path, Env& env, Reading reading);

/// What is to be read, after everything was found to fit.
struct FoundWeights {
  StoredTensors stored;
  Matching matching;
};

/// Which tensor at `path` goes where. BadInput, beside openWeights' and matchNames': a diff, and
/// behind it `advice`; of Reading::All, a value that is too large for the type that it is rounded
/// to.
Result<FoundWeights> findWeights(const std::string& path, const InitRequest& request,
                                 std::string_view advice, Env& env, Reading reading);

} // namespace titan::checkpoint
