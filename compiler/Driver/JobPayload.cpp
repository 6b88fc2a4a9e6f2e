#include "compiler/Driver/JobPayload.h"

#include "runtime/program/Text.h"

#include <map>
#include <tuple>

namespace titan {
namespace {

/// What tells parts apart: bytes by their digest, ranges of files by place and digest.
using Key = std::tuple<std::string, uint64_t, uint64_t, int64_t, std::string>;

Key keyOf(const PayloadPart& part) {
  return {part.path, part.fileOffset, part.digest, part.size,
          part.path.empty() ? digest128(part.bytes) : std::string()};
}

/// Old places of one program's parts -> new ones.
using Moves = std::map<int64_t, int64_t>;

void follow(const Moves& moves, int64_t& offset) {
  if (const auto found = moves.find(offset); found != moves.end())
    offset = found->second;
}

void follow(const Moves& moves, Program& program) {
  for (Constant& constant : program.constants)
    follow(moves, constant.payloadOffset);
  for (State& state : program.states)
    if (state.init.kind == Init::Kind::Payload)
      for (StoredRange& range : state.init.stored)
        follow(moves, range.offset);
  for (Image& image : program.images)
    if (image.kind != Image::Kind::Object)
      follow(moves, image.offset);
}

} // namespace

JobPayload mergePayloads(std::vector<CompiledModule>& modules) {
  JobPayload payload;
  std::map<Key, int64_t> places;
  for (CompiledModule& module : modules) {
    Moves moves;
    for (PayloadPart& part : module.payload) {
      const int64_t before = part.offset;
      const auto [place, isNew] = places.try_emplace(keyOf(part), alignedPart(payload.bytes));
      // Parts without bytes stand where another begins.
      if (part.size > 0 || !moves.contains(before))
        moves[before] = place->second;
      if (!isNew)
        continue;
      part.offset = place->second;
      payload.bytes = part.offset + part.size;
      payload.parts.push_back(std::move(part));
    }
    module.payload.clear();
    follow(moves, module.program);
  }
  return payload;
}

} // namespace titan
