// How state tensors start: bytes of the model file, or a rule. A random value is a pure function of
// (seed, name, element of the whole), so it depends neither on the mesh nor on the number of
// threads, and eager runs start from the same bits.
#pragma once

#include "runtime/device/Part.h"
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

/// Does the state start from bytes of the model file? Else a rule draws it.
bool isStored(const State& state);
/// Do its bytes lie in one tensor of the file as they do in the state? Then reading them takes no
/// memory beside the state's.
bool isStoredInPlace(const State& state);

/// Draws what `part` has of a state that a rule starts, into its memory; padding gets zeros.
/// Threads draw straight into a window.
///  - Normal, Uniform: element i of the whole state is a + b * normalDraw or a + (b - a) *
///    uniformDraw in f64, rounded once to the state's dtype; key randomKey(seed, XXH3-64(name)),
///    step 0.
/// Internal: a rule on a dtype without it.
Status drawInitialState(const State& state, const Part& part, uint64_t seed, ThreadPool& pool,
                        const ByteSink& memory);

/// Writes the whole state, row-major, piece by piece and in order.
///  - Payload, External: the stored tensors, each of which must have its digest, cut and turned as
///    State::sources say. The program was verified.
///  - else: what drawInitialState() gives; `pool` is for these alone.
/// BadInput: a weights file that is missing, short or changed. Internal: a damaged payload.
Status writeInitialState(const State& state, const InitialStateSources& sources, ThreadPool& pool,
                         const ByteSink& whole);

} // namespace titan
