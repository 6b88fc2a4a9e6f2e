// Files that hold code in the place of data. Titan reads none; it says what makes safetensors of
// them.
#pragma once

#include "runtime/checkpoint/Env.h"

namespace titan::checkpoint {

/// BadInput with the command that converts: the file at `path` is a pickle, by its ending (.pt,
/// .pth, .bin, .ckpt, .pkl, .distcp) or by its first bytes. Nothing of it is executed.
Status refusePickle(const std::string& path, Env& env);

/// The same where the directory `path` holds pickles.
Status refusePickles(const std::string& path, Env& env);

} // namespace titan::checkpoint
