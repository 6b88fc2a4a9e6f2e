// How state tensors start: bytes of the model file, or a rule. A random value is a pure function of
// (seed, name, element), so it depends neither on the mesh nor on the number of threads, and eager
// runs start from the same bits.
#pragma once

#include "runtime/device/Bytes.h"
#include "runtime/host/ThreadPool.h"
#include "runtime/program/Program.h"

#include <string>
#include <string_view>

namespace titan {

struct InitialStateSources {
  std::string_view payload = {};      ///< the job's payload
  std::string weightsDirectory = "."; ///< where Init::External paths start
  uint64_t seed = 0;                  ///< recipe key train.seed
};

/// Writes the state.bytes bytes of `destination`, row-major. Threads draw straight into a window.
///  - Normal, Uniform: element i is a + b * normalDraw or a + (b - a) * uniformDraw in f64, rounded
///    once to the state's dtype; key randomKey(seed, XXH3-64(name)), step 0.
///  - Payload, External: the stored tensors, each of which must have its digest, cut and turned as
///    State::sources say. The program was verified.
/// BadInput: a weights file that is missing, short or changed. Internal: a damaged payload, a rule
/// on a dtype without it.
Status writeInitialState(const State& state, const InitialStateSources& sources, ThreadPool& pool,
                         const ByteSink& destination);

} // namespace titan
