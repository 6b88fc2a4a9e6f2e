// Questions about #kernel.attention that its verifier and code generation share.
#pragma once

#include "dialects/Kernel/Kernel.h"

namespace titan::kernel {

/// The numbers of ins and outs that the routine's parameters name.
struct AttentionOperands {
  int64_t ins = 0, outs = 0;
};
AttentionOperands countOperands(AttentionAttr attention);

/// The routine without what code gets as a scalar: the stream of its dropout.
AttentionAttr withoutStream(AttentionAttr attention);
/// The routine with its work cut otherwise.
AttentionAttr withBlocks(AttentionAttr attention, AttentionBlocksAttr blocks);

} // namespace titan::kernel
