// What --poison finds on a card: kernels that write or read what the plan does not give them. The
// driver is not told what their operands are, as a card's is not.
#include "runtime/job/testing/JobCudaFixture.h"

namespace titan::testing {
namespace {

class JobCudaPoisonTest : public JobCudaTest {
protected:
  static constexpr uint32_t finish = 4; ///< one thread, which writes the step's metrics

  void SetUp() override {
    JobCudaTest::SetUp();
    forCard = deserialize(cardBytes).take();
  }

  /// The kernel `finish` ends with `lines`, and without the line that names its operands.
  void plant(const std::string& lines) {
    Image& image = forCard.images[0];
    std::string ptx = payload.substr(static_cast<size_t>(image.offset));
    const size_t operands = ptx.find(fmt::format("// titan: titan_kernel_{} ", finish));
    ptx.erase(operands, ptx.find('\n', operands) + 1 - operands);
    ptx.insert(ptx.find("  ret;", ptx.find(fmt::format(".entry titan_kernel_{}(", finish))), lines);
    payload.resize(static_cast<size_t>(image.offset));
    payload += ptx;
    image = ptxImage(ptx, image.offset);
    cardBytes = serialize(forCard);
  }

  const Function& step() const { return forCard.functions[0]; }
  int64_t offsetOfLoss() const {
    return std::ranges::find(step().bindings, "loss", &Binding::name)->offset;
  }
  /// The bytes of a temporary that is dead when `finish` runs.
  int64_t deadOffset() const {
    const auto command = std::ranges::find_if(step().commands, [](const Command& each) {
      return each.kind == CommandKind::Kernel && each.target == finish;
    });
    const auto number = static_cast<uint32_t>(command - step().commands.begin());
    return std::ranges::find_if(step().temporaries,
                                [&](const LiveRange& range) { return range.last < number; })
        ->offset;
  }

  Outcome trainPoisoned() const {
    std::vector<std::string> arguments = train("poisoned", "cuda", 3);
    arguments.push_back("--poison");
    return runBoth(arguments);
  }

  Program forCard;
};

TEST_F(JobCudaPoisonTest, AWriteBehindAnOperand) {
  plant("  st.global.f32 [%p4+4], %f1;\n"); // behind the loss
  const Outcome plain = runBoth(train("plain", "cuda", 3));
  EXPECT_EQ(plain.exitCode, 0) << plain.err;
  const Outcome poisoned = trainPoisoned();
  EXPECT_EQ(poisoned.exitCode, 4) << poisoned.err;
  EXPECT_NE(
      poisoned.err.find(fmt::format(
          "byte {} of the arena was written, and the plan gives it to nobody", offsetOfLoss() + 4)),
      std::string::npos)
      << poisoned.err;
}

TEST_F(JobCudaPoisonTest, AReadOfWhatIsDead) {
  plant(fmt::format("  ld.global.f32 %f9, [%p4+{}];\n  st.global.f32 [%p4], %f9;\n",
                    deadOffset() - offsetOfLoss()));
  ASSERT_EQ(runBoth(train("plain", "cuda", 3)).exitCode, 0);
  const Outcome poisoned = trainPoisoned();
  ASSERT_EQ(poisoned.exitCode, 0) << poisoned.err;
  for (const Json& row : metrics("plain"))
    EXPECT_TRUE(row["loss"].is_number()) << row;
  for (const Json& row : metrics("poisoned"))
    EXPECT_TRUE(row["loss"].is_null()) << row;
}

} // namespace
} // namespace titan::testing
