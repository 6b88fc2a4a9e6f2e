// The linear program for a card: its kernels in PTX, written by hand, add in the order of those in
// C++, so both devices have the same bits.
#pragma once

#include "runtime/program/Program.h"

#include <string>

namespace titan::testing {

/// linearProgram(recipe) for a card; its only image is PTX for sm_80 behind linearPayload().
Program linearCudaProgram(const std::string& recipe = "");
/// Of linearCudaProgram(): the initial weight, then the PTX.
std::string linearCudaPayload();

/// `program` with `bytes` of workspace behind its arena, which its library calls share.
Program withWorkspace(Program program, int64_t bytes = 4096);

/// `program` with an attention call at the head of its first function, which nothing else touches,
/// and its code behind that of `payload`. What computes it is no attention, but enough for a trial:
/// the result is the value, and each statistic has the bytes 0x3f. `workspace`: bytes.
Program withAttention(Program program, std::string& payload, int64_t workspace = 1024);

/// A program without state whose kernels are the entry points of `ptx`, one launch of one thread
/// each; its image is the whole payload.
Program ptxProgram(const std::string& ptx, std::vector<std::string> entries);
/// "sm_80" is that of the text.
Image ptxImage(const std::string& ptx, int64_t offset = 0);

/// The lines that a PTX text begins with.
std::string ptxHeader(const char* version = "8.0", const char* target = "sm_80");
/// An entry point of that many parameters and threads; `body` finds parameter N in %pN, and may use
/// predicates %q, f32 %f, b32 %r and b64 %d, 64 of each. `operands` as in "read 4, both 8".
std::string ptxEntry(const std::string& name, const std::string& operands, int scalars, int threads,
                     const std::string& body);

} // namespace titan::testing
