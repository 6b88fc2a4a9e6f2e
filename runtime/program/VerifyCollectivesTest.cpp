// Constraints of collectives in a program, one by one.
#include "runtime/program/testing/ExampleProgram.h"

#include <gtest/gtest.h>

#include <functional>

namespace titan {
namespace {

using testing::errorAfter;
using testing::errorAfterCommands;

/// After a change of the one collective: an all_reduce over both axes, 2 x 3 ranks.
std::string errorOfTable(const std::function<void(Collective&)>& change) {
  return errorAfter([&](Program& p) { change(p.collectives[0]); });
}

const std::string inTable = "damaged program: collective 0 'fc, count' ";
std::string inCommand(int command) {
  return fmt::format("damaged program: function 'step', command {}: ", command);
}

Command zeroing(int64_t offset, int64_t bytes) {
  Command zero;
  zero.kind = CommandKind::Zero;
  zero.phase = Phase::Update;
  zero.operands = {{{offset}, bytes, Access::Write}};
  return zero;
}

/// `command` between the start and the wait.
std::string errorBetween(const Command& command) {
  return errorAfterCommands([&](auto& c) { c.insert(c.begin() + 5, command); });
}

TEST(VerifyCollectives, AxesAreTheMeshsInItsOrder) {
  const std::string axis = "which the mesh lacks, has one rank or stands before the one before";
  EXPECT_EQ(errorOfTable([](Collective& c) { c.axes = {2}; }), inTable + "names axis 2, " + axis);
  EXPECT_EQ(errorOfTable([](Collective& c) { c.axes = {1, 0}; }),
            inTable + "names axis 0, " + axis);
  EXPECT_EQ(errorOfTable([](Collective& c) { c.axes = {0, 0}; }),
            inTable + "names axis 0, " + axis);
  EXPECT_EQ(errorAfter([](Program& p) { p.mesh[0].ranks = 1; }), inTable + "names axis 0, " + axis);
  EXPECT_EQ(errorOfTable([](Collective& c) { c.axes.clear(); }),
            inTable + "has 0 axes and 2 pieces");
  EXPECT_EQ(errorOfTable([](Collective& c) { c.pieces.clear(); }),
            inTable + "has 2 axes and 0 pieces");
}

TEST(VerifyCollectives, PiecesCanBeCutAndSummed) {
  EXPECT_EQ(errorOfTable([](Collective& c) { c.kind = CollectiveKind::AllGather; }),
            inTable + "cuts 100 elements for 6 ranks");
  EXPECT_EQ(errorOfTable([](Collective& c) { c.pieces[0].dtype = DType::I32; }),
            inTable + "sums I32");
  EXPECT_EQ(errorOfTable([](Collective& c) { c.pieces[0].inner = 0; }),
            inTable + "has a piece of [1, 0] elements");
  EXPECT_EQ(errorOfTable([](Collective& c) { c.pieces[0].outer = INT64_MAX; }),
            inTable + "has a piece of [9223372036854775807, 100] elements");
  EXPECT_EQ(errorOfTable([](Collective& c) { c.order = SumOrder::Tree; }),
            inTable + "is a tree over 6 ranks");
}

TEST(VerifyCollectives, ATreeHasTwoToTheNRanks) {
  EXPECT_EQ(errorOfTable([](Collective& c) { c.order = SumOrder::Tree, c.axes = {0}; }), "");
}

TEST(VerifyCollectives, StagingIsPagesOfTheArena) {
  const std::string damaged = "damaged program: staging of ";
  EXPECT_EQ(errorAfter([](Program& p) { p.stagingOffset += 64; }),
            damaged + "4096 bytes at 950336 of an arena of 1048576");
  EXPECT_EQ(errorAfter([](Program& p) { p.stagingBytes = 100; }),
            damaged + "100 bytes at 950272 of an arena of 1048576");
  EXPECT_EQ(errorAfter([](Program& p) { p.stagingBytes = 1 << 20; }),
            damaged + "1048576 bytes at 950272 of an arena of 1048576");
  EXPECT_EQ(errorAfter([](Program& p) { p.stagingBytes = 0; }),
            damaged + "0 bytes at 950272 of an arena of 1048576");
}

TEST(VerifyCollectives, SourcesLieInStaging) {
  EXPECT_EQ(errorAfterCommands([](auto& c) { c[4].operands[1].address.base = 970000; }),
            inCommand(4) + "source 1 lies outside of staging");
}

TEST(VerifyCollectives, SourcesHaveOnePlaceOnAllRanks) {
  EXPECT_EQ(errorAfterCommands(
                [](auto& c) { c[4].operands[1].address.terms = {{Affine::meshVariable(0), 64}}; }),
            inCommand(4) + "source 1 lies elsewhere on other ranks");
}

TEST(VerifyCollectives, OperandsAreSourcesThenResultsOfTheBytesThatThePiecesSay) {
  EXPECT_EQ(errorAfterCommands([](auto& c) { c[4].operands[0].bytes = 404; }),
            inCommand(4) + "operand 0 is no source of 400 bytes");
  EXPECT_EQ(errorAfterCommands([](auto& c) { c[4].operands[3].access = Access::Both; }),
            inCommand(4) + "operand 3 is no result of 8 bytes");
  EXPECT_EQ(errorAfterCommands([](auto& c) { c[4].operands.pop_back(); }),
            inCommand(4) + "3 operands, expected 4");
  // Parts and wholes: of an all_gather over 3 ranks the source is a third.
  EXPECT_EQ(
      errorOfTable([](Collective& c) {
        c = {CollectiveKind::AllGather, {}, {1}, {{DType::F32, 1, 300}, {DType::I64, 1, 3}}, ""};
      }),
      inCommand(4) + "operand 2 is no result of 1200 bytes");
  EXPECT_EQ(
      errorOfTable([](Collective& c) {
        c = {
            CollectiveKind::ReduceScatter, {}, {1}, {{DType::F32, 1, 300}, {DType::I64, 1, 3}}, ""};
      }),
      inCommand(4) + "operand 0 is no source of 1200 bytes");
}

TEST(VerifyCollectives, ResultsLieOnNoOtherOperand) {
  EXPECT_EQ(errorAfterCommands([](auto& c) { c[4].operands[3].address.base = 960392; }),
            inCommand(4) + "result 1 lies on another operand");
  EXPECT_EQ(errorAfterCommands([](auto& c) { c[4].operands[3].address.base = 950272; }),
            inCommand(4) + "result 1 lies on another operand");
}

TEST(VerifyCollectives, AnAllReduceMayBeInPlace) {
  EXPECT_EQ(errorAfterCommands([](auto& c) {
              for (int i : {4, 5})
                c[i].operands[2].address = c[i].operands[0].address;
            }),
            "");
}

TEST(VerifyCollectives, OneStartAndOneWait) {
  EXPECT_EQ(errorAfterCommands([](auto& c) { c[4].target = 1; }),
            inCommand(4) + "collective 1 of 1");
  EXPECT_EQ(errorAfterCommands([](auto& c) { c.insert(c.end(), {c[4], c[5]}); }),
            inCommand(6) + "collective 0 is started at two places");
  EXPECT_EQ(errorAfterCommands([](auto& c) { c.pop_back(); }),
            inCommand(5) + "nobody waits for collective 0");
  EXPECT_EQ(errorAfterCommands([](auto& c) { c.erase(c.begin() + 4); }),
            inCommand(4) + "waits for collective 0, which is not started beside it");
  EXPECT_EQ(errorAfterCommands([](auto& c) { c.resize(4); }),
            "damaged program: nobody starts collective 0");
  EXPECT_EQ(errorAfterCommands([](auto& c) { c[5].operands[2].address.base += 4; }),
            inCommand(5) + "waits for collective 0 with other operands");
}

TEST(VerifyCollectives, StartAndWaitStandInOneIteration) {
  auto around = [](size_t begin, size_t end) {
    return errorAfterCommands([=](std::vector<Command>& c) {
      const Command open = c[1], close = c[3];
      c.insert(c.begin() + static_cast<ptrdiff_t>(end), close);
      c.insert(c.begin() + static_cast<ptrdiff_t>(begin), open);
    });
  };
  EXPECT_EQ(around(4, 6), "");
  EXPECT_EQ(around(4, 5), inCommand(6) + "ends a repeat that does not wait for collective 0");
  EXPECT_EQ(around(5, 6), inCommand(6) + "waits for collective 0, which is not started beside it");
}

TEST(VerifyCollectives, NothingWritesToSourcesOfWhatIsUnderWay) {
  EXPECT_EQ(errorBetween(zeroing(950272 + 396, 64)),
            inCommand(5) + "writes to a source of collective 0, which is not waited for");
  EXPECT_EQ(errorBetween(zeroing(950272 + 400, 48)), "");
}

TEST(VerifyCollectives, NothingTouchesResultsOfWhatIsUnderWay) {
  const std::string error =
      inCommand(5) + "touches a result of collective 0, which is not waited for";
  Command copy = zeroing(970000, 8);
  copy.kind = CommandKind::Copy;
  copy.operands.push_back({{960448}, 8});
  EXPECT_EQ(errorBetween(copy), error);
  EXPECT_EQ(errorBetween(zeroing(960392, 8)), error);
  copy.operands[1].address.base = 950720;
  EXPECT_EQ(errorBetween(copy), "") << "sources may be read";
}

TEST(VerifyCollectives, ASecondCollectiveIsAnAccessToo) {
  auto second = [](int64_t source, int64_t result) {
    return errorAfter([=](Program& p) {
      p.collectives.push_back(
          {CollectiveKind::AllReduce, SumOrder::Rank, {1}, {{DType::F32, 1, 2}}, "second"});
      Command start = p.functions[0].commands[4];
      start.target = 1;
      start.operands = {{{source}, 8}, {{result}, 8, Access::Write}};
      Command wait = start;
      wait.kind = CommandKind::CollectiveWait;
      std::vector<Command>& commands = p.functions[0].commands;
      commands.insert(commands.begin() + 5, {start, wait});
    });
  };
  EXPECT_EQ(second(951000, 970000), "");
  EXPECT_EQ(second(950272, 970000), "") << "two may read one source";
  EXPECT_EQ(second(951000, 960000),
            inCommand(5) + "touches a result of collective 0, which is not waited for");
}

TEST(VerifyCollectives, PlacesOfOneIterationAreComparedWithEachOther) {
  // Rows of stacks: in each iteration the one is beside the other, over all iterations they meet.
  auto error = [](int64_t beside) {
    return errorAfterCommands([=](std::vector<Command>& c) {
      const Command open = c[1], close = c[3];
      for (int i : {4, 5})
        c[i].operands[2].address = {960000, {{0, 800}}};
      Command zero = zeroing(0, 400);
      zero.operands[0].address = {960000 + beside, {{0, 800}}};
      for (int i : {4, 5})
        c[i].operands[3].address.base = 970000;
      c.insert(c.begin() + 5, zero);
      c.insert(c.begin() + 4, open);
      c.push_back(close);
    });
  };
  EXPECT_EQ(error(400), "");
  EXPECT_EQ(error(396), inCommand(6) + "touches a result of collective 0, which is not waited for");
}

} // namespace
} // namespace titan
