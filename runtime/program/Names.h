// Names: canonical ones of parameters, which are module paths of the source framework, and those of
// profiles.
#pragma once

#include <string>
#include <string_view>

namespace titan {

/// Where the segment `module` is a wrapper's. In front it is that of DistributedDataParallel, which
/// is put around all of a model; behind that, modules call children of their own so.
enum class ModuleWraps { InFront, Anywhere };

/// `name` without the segments that wrappers of the training framework put into it: `module.`, and
/// `_orig_mod.`, `_fsdp_wrapped_module.` and `_checkpoint_wrapped_module.` wherever they stand as a
/// whole segment.
/// The last segment is the tensor's own name and stays.
std::string stripWrapperSegments(std::string_view name, ModuleWraps wraps = ModuleWraps::InFront);

/// Letters, digits and '_', at least one: a profile's name becomes a part of a folder's name and of
/// symbols.
bool isProfileName(std::string_view text);

} // namespace titan
