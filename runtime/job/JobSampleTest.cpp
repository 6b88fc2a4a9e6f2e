// Commands on tokens: `sample`, and `train` on a text, with a language model made by hand.
#include "runtime/job/testing/BigramProgram.h"
#include "runtime/job/testing/JobTestFixture.h"

#include <cmath>
#include <cstring>
#include <tuple>

namespace titan {
namespace {

using namespace titan::testing;

class JobSampleTest : public JobTest {
protected:
  void useBigram(int64_t vocabulary, const std::string& recipe = "[train]\nsteps = 3\n") {
    program = bigramProgram(vocabulary, recipe);
    programBytes = serialize(program);
    payload = bigramPayload(vocabulary);
    kernels = bigramKernels();
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
};

TEST_F(JobSampleTest, TheMostLikelyBytesFollowThePrompt) {
  useBigram(256);
  // Longer than the window of 8, in prompt and continuation.
  const Outcome outcome =
      run({"sample", "--prompt", "abcdefghij", "--tokens", "12", "--temperature", "0"});
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "abcdefghijklmnopqrstuv\n");
  EXPECT_NE(outcome.err.find("no checkpoint"), std::string::npos);
}

TEST_F(JobSampleTest, OtherVocabulariesAreNumbers) {
  useBigram(10);
  Outcome outcome = run({"sample", "--prompt", "3, 7", "--tokens", "4", "--temperature", "0"});
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "3 7 8 9 0 1\n");
  useBigram(256);
  outcome = run({"sample", "--ids", "--prompt", "97", "--tokens", "2", "--temperature", "0"});
  EXPECT_EQ(outcome.out, "97 98 99\n");
}

TEST_F(JobSampleTest, ASeedDecidesTheText) {
  useBigram(10);
  auto text = [&](const std::string& seed, const std::string& threads) {
    return run({"sample", "--prompt", "0", "--tokens", "40", "--seed", seed, "--threads", threads})
        .out;
  };
  EXPECT_EQ(text("1", "1"), text("1", "2"));
  EXPECT_NE(text("1", "1"), text("2", "1"));
  // Of the two tokens that the model may choose, top-k leaves one.
  EXPECT_EQ(run({"sample", "--prompt", "0", "--tokens", "5", "--top-k", "1"}).out, "0 1 2 3 4 5\n");
}

TEST_F(JobSampleTest, HelpNamesEveryFlag) {
  const Outcome outcome = run({"sample", "--help"});
  EXPECT_EQ(outcome.exitCode, 0);
  for (const char* flag : {"--ckpt", "--out", "--threads", "--prompt", "--tokens", "--temperature",
                           "--top-k", "--seed", "--ids"})
    EXPECT_NE(outcome.out.find(flag), std::string::npos) << flag;
}

TEST_F(JobSampleTest, Refusals) {
  useBigram(10);
  for (auto [arguments, code, text] :
       std::vector<std::tuple<std::vector<std::string>, int, std::string>>{
           {{"sample"}, 2, "--prompt is needed: token ids in [0, 10)"},
           {{"sample", "--prompt", "a"}, 2, "'a' is no token id"},
           {{"sample", "--prompt", "1 -1"}, 2, "token -1 is not in [0, 10)"},
           {{"sample", "--prompt", "10"}, 2, "token 10 is not in [0, 10)"},
           {{"sample", "--prompt", "1", "--tokens", "0"}, 2, "--tokens"},
           {{"sample", "--prompt", "99999999999999999999"},
            2,
            "token 99999999999999999999 is not in"},
           {{"sample", "--prompt", "1", "--temperature", "-1"},
            2,
            "--temperature: '-1' is no number from 0 to 1000000"},
           {{"sample", "--prompt", "1", "--temperature", "nan"}, 2, "'nan' is no number"},
           {{"sample", "--prompt", "1", "--temperature", "inf"}, 2, "'inf' is no number"},
           {{"sample", "--prompt", "1", "--temperature", ""}, 2, "'' is no number"},
           {{"sample", "--prompt", "1", "--top-k", "-1"}, 2, "--top-k"},
           {{"sample", "--prompt", "1", "--ckpt", path("none")}, 1, "no checkpoint"}}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exitCode, code) << outcome.err;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  useBigram(256);
  EXPECT_NE(run({"sample", "--prompt", ""}).err.find("--prompt is empty"), std::string::npos);
}

TEST_F(JobSampleTest, ModelsWithoutTokensAreRefused) {
  Outcome outcome = run({"sample", "--prompt", "1"}); // the linear program
  EXPECT_EQ(outcome.exitCode, 1);
  EXPECT_NE(outcome.err.find("'linear' is no language model: field 'x' needs F32"),
            std::string::npos)
      << outcome.err;
  useBigram(10);
  program.functions[1].bindings[1].shape = {BigramShape::micro, 10};
  programBytes = serialize(program);
  outcome = run({"sample", "--prompt", "1"});
  EXPECT_EQ(outcome.exitCode, 1);
  EXPECT_NE(
      outcome.err.find("output 'logits' F32 [2, 10] is not a row of logits for each of 2 x 8"),
      std::string::npos)
      << outcome.err;
}

TEST_F(JobSampleTest, UselessWeightsAreReported) {
  useBigram(10);
  const float nan = std::nanf("");
  std::memcpy(payload.data() + 4 * sizeof nan, &nan, sizeof nan); // the row of token 0
  program.states[0].init.stored[0].digest = digestOf(payload);
  programBytes = serialize(program);
  const Outcome outcome = run({"sample", "--prompt", "0"});
  EXPECT_EQ(outcome.exitCode, 5);
  EXPECT_NE(outcome.err.find("the model's output for token 4 is nan"), std::string::npos)
      << outcome.err;
}

TEST_F(JobSampleTest, TrainsOnATextInTokens) {
  useBigram(256);
  const std::string text = write("t.txt", "abcdefghijklmnopqrstuvwxyz{|}~");
  const Outcome outcome = run({"train", "--data", text});
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("tokens/s"), std::string::npos) << outcome.err;
  for (const Json& row : metrics("job.run")) {
    EXPECT_EQ(row["loss"], 0); // every target is the next byte
    EXPECT_EQ(row["tokens"], BigramShape::micro * BigramShape::window);
  }
}

TEST_F(JobSampleTest, TextsThatTheModelCannotReadAreRefused) {
  useBigram(100);
  const std::string other = write("other.txt", "9876543210ABCDEFGHIJKLMNOPQRSTUVWXYz");
  Outcome outcome = run({"train", "--data", other});
  EXPECT_EQ(outcome.exitCode, 1);
  EXPECT_NE(outcome.err.find("other.txt: token 35 is 122, field 'ids' takes [0, 100)"),
            std::string::npos)
      << outcome.err;
  EXPECT_FALSE(fs::exists(path("job.run")));
  const std::string brief = write("brief.txt", "01234567");
  outcome = run({"train", "--data", brief});
  EXPECT_EQ(outcome.exitCode, 1);
  EXPECT_NE(outcome.err.find("8 tokens are too few"), std::string::npos) << outcome.err;
}

} // namespace
} // namespace titan
