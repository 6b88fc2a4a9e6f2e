// Prints the speed of the generated attention routines on one thread, and what compiling the two of
// a shape takes. Scores that a causal limit excludes count as no work. Argument: runs of each, of
// which the fastest counts (10).
#include "compiler/Codegen/cpu/testing/AttentionCase.h"

#include <cstdlib>

using titan::codegen::testing::AttentionCase;
using titan::codegen::testing::AttentionSpec;

int main(int argc, char** argv) {
  int repeats = argc > 1 ? std::atoi(argv[1]) : 10;
  fmt::print("{:40} {:>9} {:>9} {:>13}\n",
             "GFLOP/s, fastest of " + std::to_string(repeats) + " runs", "forward", "backward",
             "compiled, ms");
  for (const char* element : {"f32", "bf16"})
    for (int64_t queries : {64, 256, 1024})
      for (double p : {0.0, 0.1}) {
        AttentionSpec spec = {.batch = queries == 1024 ? 2 : 8,
                              .queries = queries,
                              .heads = 6,
                              .width = 64,
                              .element = element,
                              .causal = true,
                              .p = p,
                              .isPacked = true};
        AttentionCase attention(spec);
        auto speed = [&](bool isBackward) {
          return attention.flops(isBackward) / attention.seconds(isBackward, repeats) * 1e-9;
        };
        fmt::print("{:40} {:9.0f} {:9.0f} {:13.0f}\n",
                   fmt::format("B{} H{} T{} d{} {} causal{}", spec.batch, spec.heads, queries,
                               spec.width, element, p > 0 ? " dropout" : ""),
                   speed(false), speed(true), 1e3 * attention.compileSeconds);
      }
}
