#include "runtime/program/testing/ExampleProgram.h"

#include <gtest/gtest.h>

#include <functional>

namespace titan {
namespace {

using testing::errorAfter;
using testing::errorAfterCommands;

constexpr const char* inCall = "damaged program: function 'step', command 2: ";

TEST(Verify, Example) {
  EXPECT_EQ(errorAfter([](Program&) {}), "");
}

TEST(Verify, SourcesCoverTheStateAndLieInWhatIsStored) {
  const auto error = [](const std::function<void(State&)>& change) {
    return errorAfter([&](Program& program) { change(program.states[0]); });
  };
  const std::string damaged = "damaged program: the sources of state 'fc.weight' ";
  EXPECT_EQ(error([](State& s) { s.sources[1].piece.at[0] = 27; }), damaged + "overlap at [27, 0]");
  EXPECT_EQ(error([](State& s) { s.sources[1].piece.extent[0] = 99; }),
            damaged + "leave 784 of 100352 elements out");
  EXPECT_EQ(error([](State& s) { s.sources[1].piece.from[0] = 2; }),
            damaged + "a piece of 'W' from [2, 0, 0] of extent [1, 100, 784] leaves the "
                      "initializer [2, 100, 784]");
  EXPECT_EQ(error([](State& s) { s.init.stored.pop_back(); }),
            damaged + "are of 2 initializers, 1 are there");
  EXPECT_EQ(error([](State& s) { s.init.stored.clear(); }),
            "damaged program: state 'fc.weight' starts from 0 stored tensors");
  EXPECT_EQ(error([](State& s) { s.init.stored[0].bytes -= 4; }),
            "damaged program: state 'fc.weight' is stored as [784, 28] in 87804 bytes at 64");
  EXPECT_EQ(error([](State& s) { s.sources.clear(); }),
            "damaged program: state 'fc.weight' of [128, 784] is stored as [784, 28]");
}

TEST(Verify, NegativeModelFlops) {
  EXPECT_EQ(errorAfter([](Program& p) { p.functions[0].modelFlops = -1; }),
            "damaged program: function 'step' asks for -1 FLOP");
}

TEST(Verify, OperandOfTheLastIterationLeavesTheArena) {
  EXPECT_EQ(errorAfterCommands([](auto& c) { c[2].operands[0].address.terms[0].stride = 100000; }),
            std::string(inCall) +
                "operand 0 at 600000, 200704 bytes, leaves the arena of 1048576 bytes");
}

TEST(Verify, OperandBeforeTheArena) {
  EXPECT_NE(errorAfterCommands([](auto& c) { c[2].operands[1].address.terms = {{0, -4}}; }), "");
}

TEST(Verify, StrideOverflow) {
  EXPECT_NE(
      errorAfterCommands([](auto& c) { c[2].operands[0].address.terms[0].stride = INT64_MAX; }),
      "");
}

TEST(Verify, OperandOfNegativeSize) {
  EXPECT_NE(errorAfterCommands([](auto& c) { c[0].operands[0].bytes = -1; }), "");
}

TEST(Verify, TermsHaveOneForm) {
  const std::string error = std::string(inCall) + "the terms of operand 0 are out of order, or 0";
  EXPECT_EQ(errorAfterCommands([](auto& c) { c[2].operands[0].address.terms[0].stride = 0; }),
            error);
  EXPECT_EQ(errorAfterCommands([](auto& c) { c[2].operands[0].address.terms = {{0, 4}, {0, 4}}; }),
            error);
  EXPECT_EQ(errorAfterCommands([](auto& c) { c[2].scalars = {{0, {{8, 4}, {0, 4}}}}; }),
            std::string(inCall) + "the terms of scalar 0 are out of order, or 0");
}

TEST(Verify, VariablesAreThoseOfOpenRepeatsAndOfTheMesh) {
  EXPECT_EQ(errorAfterCommands([](auto& c) { c[2].operands[1].address.terms = {{1, 4}}; }),
            std::string(inCall) + "operand 1 varies with repeat 1, of 1");
  EXPECT_EQ(errorAfterCommands([](auto& c) { c[2].operands[1].address.terms = {{11, 4}}; }),
            std::string(inCall) + "operand 1 varies with mesh axis 3, of 2");
  EXPECT_NE(errorAfterCommands([](auto& c) { c[0].operands[0].address.terms = {{0, 4}}; }), "");
}

TEST(Verify, IndexOutOfItsTable) {
  EXPECT_EQ(errorAfterCommands([](auto& c) { c[2].target = 1; }),
            std::string(inCall) + "library call 1 of 1");
  EXPECT_EQ(errorAfter([](Program& p) { p.libraryCalls[0].fallback = 2; }),
            "damaged program: library call 'fc' has tiles of 64 x 64, 0 bytes of workspace and "
            "fallback 2 of 2 kernels");
}

TEST(Verify, UnbalancedRepeat) {
  EXPECT_NE(errorAfterCommands([](auto& c) { c.erase(c.begin() + 3); }), "");
  EXPECT_NE(errorAfterCommands([](auto& c) { c[1].kind = CommandKind::EndRepeat; }), "");
}

TEST(Verify, RepeatsAreAtMostEightDeep) {
  auto nested = [](size_t depth) {
    return errorAfterCommands([depth](std::vector<Command>& c) {
      const Command open = c[1], close = c[3];
      c.assign(depth, open);
      c.insert(c.end(), depth, close);
    });
  };
  auto withoutTemporaries = [&](size_t depth) {
    return errorAfter([depth](Program& p) {
      Function& step = p.functions[0];
      const Command open = step.commands[1], close = step.commands[3];
      step.temporaries.clear();
      p.collectives.clear();
      step.commands.assign(depth, open);
      step.commands.insert(step.commands.end(), depth, close);
    });
  };
  EXPECT_EQ(withoutTemporaries(8), "");
  EXPECT_EQ(nested(9), "damaged program: function 'step', command 8: repeat of 4 at depth 8: needs "
                       "at least 1, depth below 8");
}

TEST(Verify, ZeroBeyondTheArena) {
  EXPECT_EQ(errorAfterCommands([](auto& c) { c[0].operands[0].bytes = 1 << 20; }),
            "damaged program: function 'step', command 0: operand 0 at 900000, 1048576 bytes, "
            "leaves the arena of 1048576 bytes");
}

TEST(Verify, CopiesOfOneSize) {
  EXPECT_EQ(errorAfterCommands([](auto& c) {
              c[0].kind = CommandKind::Copy;
              c[0].operands.push_back({{0}, 256});
            }),
            "damaged program: function 'step', command 0: copies 256 bytes to 512");
}

TEST(Verify, OperandsOfAllRanksLieInTheArena) {
  const uint8_t shard = Affine::meshVariable(1);
  auto error = [&](int64_t stride) {
    return errorAfterCommands([&](auto& c) { c[0].operands[0].address.terms = {{shard, stride}}; });
  };
  EXPECT_EQ(error(74032), "") << "three ranks: the last ends where the arena does";
  EXPECT_NE(error(80000), "");
}

TEST(Verify, StateOutsideOfTheArena) {
  EXPECT_NE(errorAfter([](Program& p) { p.states[0].offset = 1 << 20; }), "");
}

TEST(Verify, LocalShapesFollowThePlacement) {
  EXPECT_EQ(errorAfter([](Program& p) { p.states[0].placement = {{1, 1}}; }),
            "damaged program: state 'fc.weight' of [128, 784] has 401408 bytes as [128, 784] on a "
            "rank");
  EXPECT_NE(errorAfter([](Program& p) { p.states[0].placement = {{2, 0}}; }), "");
  EXPECT_NE(errorAfter([](Program& p) { p.states[0].bytes -= 4; }), "");
  EXPECT_NE(errorAfter([](Program& p) { p.states[0].shape = {INT64_MAX, 3}; }), "");
  EXPECT_EQ(errorAfter([](Program& p) { p.mesh[1].ranks = 0; }),
            "damaged program: mesh axis 'shard' has 0 ranks");
  EXPECT_EQ(errorAfter([](Program& p) { p.mesh[1].ranks = INT64_MAX; }),
            "damaged program: mesh axis 'shard' has 9223372036854775807 ranks");
}

TEST(Verify, StatesAreUniqueByKindProfileAndName) {
  auto withAverages = [](std::string first, std::string second) {
    return errorAfter([&](Program& p) {
      State average = p.states[0];
      average.kind = StateKind::Ema;
      for (const std::string& profile : {first, second}) {
        average.profile = profile;
        p.states.push_back(average);
      }
    });
  };
  EXPECT_EQ(withAverages("slow", "fast"), "");
  EXPECT_EQ(withAverages("slow", "slow"),
            "damaged program: two states 'fc.weight' of one kind and profile");
  EXPECT_NE(withAverages("slow", ""), "") << "an average without a profile";
  EXPECT_EQ(errorAfter([](Program& p) { p.states[0].profile = "slow"; }),
            "damaged program: state 'fc.weight' has profile 'slow', as averages do");
}

TEST(Verify, ProductsStayInsideTheirOperands) {
  auto error = [](const std::function<void(Gemm&)>& change) {
    return errorAfter([&](Program& p) { change(p.libraryCalls[0].gemm); });
  };
  EXPECT_EQ(error([](Gemm& g) { g.k = 785, g.lda = g.ldb = 785; }),
            std::string(inCall) + "'fc' needs 50240 elements of A, 200704 bytes are there");
  EXPECT_EQ(error([](Gemm& g) { g.ldb = 1000; }),
            std::string(inCall) + "'fc' needs 127784 elements of B, 401408 bytes are there");
  EXPECT_EQ(errorAfter([](Program& p) {
              p.libraryCalls[0].gemm.c = DType::BF16; // and so the bias
              p.functions[0].commands[2].operands[3].bytes = 254;
            }),
            std::string(inCall) + "'fc' needs 128 elements of the bias, 254 bytes are there");
  EXPECT_NE(error([](Gemm& g) { g.batch = 2, g.batchStrideC = 1; }), "");
  EXPECT_NE(error([](Gemm& g) { g.lda = 783; }), "") << "rows overlap";
  EXPECT_NE(error([](Gemm& g) { g.m = 0; }), "");
  EXPECT_NE(error([](Gemm& g) { g.batch = INT64_MAX; }), "");
  EXPECT_NE(error([](Gemm& g) { g.batchStrideA = -1; }), "");
  EXPECT_NE(error([](Gemm& g) { g.ldc = INT64_MAX; }), "");
}

TEST(Verify, ACallHasTheOperandsOfItsRoutine) {
  EXPECT_EQ(errorAfterCommands([](auto& c) { c[2].operands.pop_back(); }),
            std::string(inCall) + "3 operands, expected 4");
  EXPECT_EQ(errorAfterCommands([](auto& c) { c[2].operands[2].access = Access::Both; }),
            std::string(inCall) + "'fc' does not use C as the table says");
  EXPECT_EQ(errorAfterCommands([](auto& c) { c[2].launch.units = 3; }),
            std::string(inCall) + "'fc' has 2 tiles, the command 3 units");
  EXPECT_EQ(errorAfter([](Program& p) { p.libraryCalls[0].workspace = 64; }),
            std::string(inCall) + "4 operands, expected 5");
  EXPECT_EQ(errorAfter([](Program& p) {
              p.libraryCalls[0].workspace = 64;
              p.functions[0].commands[2].operands.push_back({{940000}, 32, Access::Write});
            }),
            std::string(inCall) + "'fc' needs 64 bytes of workspace, 32 are there");
}

/// The library call is attention of 2 heads that share keys, [4, 8] each.
std::string attentionError(const std::function<void(LibraryCall&, Command&)>& change) {
  return errorAfter([&](Program& p) {
    LibraryCall& call = p.libraryCalls[0];
    call.routine = LibraryRoutine::Attention;
    Attention& a = call.attention;
    a.batch = a.keyHeads = 1, a.heads = 2, a.queries = a.keys = 4, a.width = a.valueWidth = 8;
    a.query = {0, 0, 64, 16, 8}, a.key = {1, 0, 32, 8, 8}, a.value = {2, 0, 32, 8, 8};
    a.result = {3, 0, 64, 16, 8};
    a.logSumExp = 4, a.operands = 5;
    Command& command = p.functions[0].commands[2];
    const Operand read = command.operands[0], written = command.operands[2];
    command.operands = {read, read, read, written, written};
    change(call, command);
  });
}

TEST(Verify, AttentionStaysInsideItsOperands) {
  const std::string inCall = attentionError([](auto&, Command& c) { c.operands.pop_back(); });
  const std::string where = inCall.substr(0, inCall.find("4 operands, expected 5"));
  EXPECT_NE(where, inCall) << inCall;
  EXPECT_EQ(attentionError([](auto&, auto&) {}), "");
  EXPECT_EQ(attentionError([](auto&, Command& c) { c.operands[3].bytes = 126; }),
            where + "'fc' needs 64 elements of the result, 126 bytes are there");
  EXPECT_EQ(attentionError([](LibraryCall& l, Command& c) {
              c.operands[0].bytes = 256;
              l.attention.query.offset = 65;
            }),
            where + "'fc' needs 129 elements of the query, 256 bytes are there");
  EXPECT_EQ(attentionError([](auto&, Command& c) { c.operands[4].bytes = 28; }),
            where + "'fc' needs 8 elements of the logarithms, 28 bytes are there");
  EXPECT_EQ(attentionError([](auto&, Command& c) { std::swap(c.operands[2], c.operands[3]); }),
            where + "'fc' does not use the value as the table says");
  EXPECT_NE(attentionError([](LibraryCall& l, auto&) { l.attention.key.row = -8; }), "");
  EXPECT_NE(attentionError([](LibraryCall& l, auto&) { l.attention.key.row = INT64_MAX; }), "");
  EXPECT_NE(attentionError([](LibraryCall& l, auto&) { l.attention.batch = 0; }), "");
  EXPECT_EQ(attentionError([](LibraryCall& l, Command& c) {
              l.workspace = 64;
              c.operands.push_back({{940000}, 32, Access::Write});
            }),
            where + "'fc' needs 64 bytes of workspace, 32 are there");
  // The gradient has operands of its own.
  EXPECT_NE(attentionError([](LibraryCall& l, auto&) { l.attention.backward = true; }), "");
}

TEST(Verify, AttentionNamesOperandsAndSharesHeadsEvenly) {
  EXPECT_EQ(attentionError([](LibraryCall& l, auto&) { l.attention.keyHeads = 3; }),
            "damaged program: library call 'fc' has 5 operands, 2 heads with 3 of keys, 0 bytes of "
            "workspace and fallback 1 of 2 kernels");
  EXPECT_NE(attentionError([](LibraryCall& l, auto&) { l.attention.keyHeads = 0; }), "");
  EXPECT_NE(attentionError([](LibraryCall& l, auto&) { l.attention.value.operand = 5; }), "");
  EXPECT_NE(attentionError([](LibraryCall& l, auto&) { l.attention.element = DType::I32; }), "");
  EXPECT_NE(attentionError([](LibraryCall& l, auto&) { l.fallback = 2; }), "");
}

TEST(Verify, NothingWritesToInputsControlsAndConstants) {
  auto zeroing = [](int64_t offset) {
    return errorAfterCommands([offset](auto& c) {
      c[0].operands[0] = {{offset}, 4, Access::Write};
      c[0].phase = Phase::Update;
    });
  };
  const std::string before = "damaged program: function 'step', command 0: operand 0 writes to ";
  EXPECT_EQ(zeroing(600000 + 200700), before + "input 'x'");
  EXPECT_EQ(zeroing(801000), before + "input 'targets'");
  EXPECT_EQ(zeroing(801512), before + "control 'optimizer.lr'");
  EXPECT_EQ(zeroing(500060), before + "constant ''");
  EXPECT_EQ(zeroing(500064), "");
}

TEST(Verify, ALongRangeIsProtectedBehindAShortOneInIt) {
  EXPECT_EQ(errorAfter([](Program& p) {
              Constant inner = p.constants[0];
              inner.offset += 16;
              inner.bytes = 4;
              p.constants.push_back(inner);
              p.functions[0].commands[0].operands[0] = {{500040}, 4, Access::Write};
            }),
            "damaged program: function 'step', command 0: operand 0 writes to constant ''");
}

TEST(Verify, OnlyPhaseUpdateWritesToStates) {
  auto zeroingTheWeight = [](Phase phase) {
    return errorAfterCommands([phase](auto& c) {
      c[0].operands[0].address.base = 0;
      c[0].phase = phase;
    });
  };
  EXPECT_EQ(zeroingTheWeight(Phase::Backward),
            "damaged program: function 'step', command 0: operand 0 writes to state 'fc.weight' "
            "before phase update");
  EXPECT_EQ(zeroingTheWeight(Phase::Update), "");
}

TEST(Verify, RepeatsAreBalanced) {
  EXPECT_EQ(errorAfter([](Program& p) {
              p.collectives.clear();
              p.functions[0].commands.resize(3);
              p.functions[0].temporaries.clear();
            }),
            "damaged program: function 'step', command 3: 1 repeat without an end");
}

TEST(Verify, GridsAreSuchAsACardCanLaunch) {
  auto error = [](const GridLaunch& launch) {
    return errorAfter([&](Program& p) {
      for (Kernel& kernel : p.kernels)
        kernel.launches = {{kernel.symbol, 4, 256, 0}, launch};
    });
  };
  EXPECT_EQ(error({"last", GridLaunch::mostBlocks, 1024, int64_t{227} << 10}), "");
  EXPECT_EQ(error({"last", 7, 1025, 96}), "damaged program: kernel 'kernel_0' launches 'last' on 7 "
                                          "blocks of 1025 threads and 96 bytes");
  EXPECT_NE(error({"", 1, 32, 0}), "");
  EXPECT_NE(error({"last", 0, 32, 0}), "");
  EXPECT_NE(error({"last", int64_t{1} << 31, 32, 0}), "");
  EXPECT_NE(error({"last", 1, 0, 0}), "");
  EXPECT_NE(error({"last", 1, 32, -1}), "");
  EXPECT_NE(error({"last", 1, 32, (int64_t{227} << 10) + 1}), "");
  EXPECT_EQ(errorAfter([](Program& p) { p.comparisons.resize(1); }),
            "damaged program: 1 comparisons of 2 kernels");
  EXPECT_EQ(errorAfter([](Program& p) {
              p.comparisons.resize(2);
              p.comparisons[1].boundUnits = 3;
            }),
            "damaged program: a comparison has 3 units of bounds");
  EXPECT_EQ(errorAfter([](Program& p) { p.comparisons[1].operands.resize(5); }),
            "damaged program: function 'step', command 2: 5 of 4 operands are compared");
  EXPECT_EQ(errorAfter([](Program& p) { p.kernels[1].launches = {{"kernel_1", 1, 32, 0}}; }),
            "damaged program: kernels 'kernel_0' and 'kernel_1' are for two kinds of device");
}

TEST(Verify, ImagesHaveDigests) {
  EXPECT_EQ(errorAfter([](Program& p) { p.images[0].digest.back() = 'g'; }),
            "damaged program: an image for 'znver5' of 9000 bytes at 0 of the payload, digest "
            "'00112233445566778899aabbccddeefg'");
  EXPECT_NE(errorAfter([](Program& p) { p.images[0].bytes = -1; }), "");
}

TEST(VerifyJob, ProgramsForTwoDevicesShareTheirStates) {
  auto error = [](const std::function<void(Program&)>& change) {
    std::vector<Program> programs(2, testing::exampleProgram());
    programs[1].target.kind = "cuda";
    change(programs[1]);
    const Status status = verifyJob(programs);
    return status.ok() ? "" : status.error().message();
  };
  EXPECT_EQ(error([](Program&) {}), "");
  EXPECT_EQ(error([](Program& p) { p.states[0].offset = 64; }), "")
      << "places in the arena are each program's own";
  EXPECT_EQ(error([](Program& p) { p.states[0].trainable = false; }),
            "damaged job: its programs for cpu and cuda have different states: 'fc.weight' and "
            "'fc.weight'");
  EXPECT_EQ(error([](Program& p) { p.states.clear(); }),
            "damaged job: its programs for cpu and cuda have different states: 'fc.weight' and ''");
  EXPECT_EQ(error([](Program& p) { p.optimizer = "sgd"; }),
            "damaged job: its programs for cpu and cuda have optimizers 'adamw' and 'sgd'");
  EXPECT_EQ(error([](Program& p) { p.recipe = "{ }"; }),
            "damaged job: its programs for cpu and cuda have two recipes");
  EXPECT_NE(error([](Program& p) { p.arenaBytes = 1; }), "") << "each is verified";
}

} // namespace
} // namespace titan
