// A function that LLVM calls.
#pragma once

namespace llvm {
class Module;
} // namespace llvm

namespace titan::codegen {

/// Defines `__truncsfbf2`, f32 to bf16 by round to nearest even, in a module that computes with
/// bf16. LLVM calls it on x86 without the instruction, where a bf16 is kept as f32 from one basic
/// block to the next; not every libgcc has it.
void defineBf16Rounding(llvm::Module& module);

} // namespace titan::codegen
