#include "runtime/device/cuda/testing/ptx/Opcodes.h"

namespace titan::ptx {

/// What needs the lanes of a warp, or the warps of a block, together: the run loop does it.
void addExchange(OpcodeTable& table) {
  constexpr Width b32 = Width::W32, predicate = Width::Predicate;
  auto put = [&](const std::string& name, Opcode opcode) {
    opcode.counter = opcode.kind == Kind::Multiply ? Class::Matrix : Class::Exchange;
    table.insert_or_assign(name, opcode);
  };
  auto shuffle = [&](const char* name, ShuffleMode mode) {
    put(std::string("shfl.sync.") + name + ".b32", {.kind = Kind::Shuffle,
                                                    .results = 2,
                                                    .sources = 4,
                                                    .widths = {b32, predicate, b32, b32, b32, b32},
                                                    .optionalResult = true,
                                                    .shuffle = mode});
  };
  shuffle("up", ShuffleMode::Up);
  shuffle("down", ShuffleMode::Down);
  shuffle("bfly", ShuffleMode::Butterfly);
  shuffle("idx", ShuffleMode::Index);
  auto vote = [&](const std::string& name, VoteMode mode) {
    Width result = mode == VoteMode::Ballot ? b32 : predicate;
    put("vote.sync." + name,
        {.kind = Kind::Vote, .sources = 2, .widths = {result, predicate, b32}, .vote = mode});
  };
  vote("all.pred", VoteMode::All);
  vote("any.pred", VoteMode::Any);
  vote("uni.pred", VoteMode::Uniform);
  vote("ballot.b32", VoteMode::Ballot);
  put("activemask.b32", {.kind = Kind::ActiveMask, .sources = 0, .widths = {b32}});
  put("bar.warp.sync", {.kind = Kind::WarpSync, .results = 0, .sources = 1, .widths = {b32}});
  put("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 unpack 4 pack 4 pack 2 pack 4",
      {.kind = Kind::Multiply,
       .results = 4,
       .sources = 10,
       .widths = {b32, b32, b32, b32, b32, b32, b32, b32, b32, b32, b32, b32, b32, b32}});
  put("cp.async.commit_group", {.kind = Kind::CommitCopies, .results = 0, .sources = 0});
  for (const char* name : {"cp.async.wait_group", "cp.async.wait_all"})
    put(name, {.kind = Kind::WaitCopies, .results = 0, .sources = 0});
  for (const char* name : {"bar.sync", "bar.cta.sync", "barrier.sync", "barrier.sync.aligned",
                           "barrier.cta.sync", "barrier.cta.sync.aligned"})
    put(name, {.kind = Kind::Barrier, .results = 0, .sources = 1, .widths = {b32}});
  for (const char* name :
       {"membar.cta", "membar.gl", "membar.sys", "fence.acq_rel.cta", "fence.acq_rel.gpu",
        "fence.acq_rel.sys", "fence.sc.cta", "fence.sc.gpu", "fence.sc.sys"})
    put(name, {.kind = Kind::Fence, .results = 0, .sources = 0});
  for (const char* name : {"ret", "exit", "ret.uni"})
    table.insert_or_assign(
        name, Opcode{.kind = Kind::Exit, .counter = Class::Control, .results = 0, .sources = 0});
}

const OpcodeTable& opcodes() {
  static const OpcodeTable table = [] {
    OpcodeTable made;
    addInteger(made);
    addBits(made);
    addFloat(made);
    addBfloat(made);
    addCompare(made);
    addConvert(made);
    addMove(made);
    addExchange(made);
    return made;
  }();
  return table;
}

} // namespace titan::ptx
