#include "runtime/metrics/MetricsFile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace titan {
namespace {

class MetricsFileTest : public testing::Test {
protected:
  void TearDown() override { std::filesystem::remove(path_); }

  std::string contents() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void setContents(std::string_view text) const { std::ofstream(path_, std::ios::binary) << text; }
  MetricsFile open(int64_t resumedStep) const {
    auto file = MetricsFile::open(path_, resumedStep);
    EXPECT_TRUE(file.ok());
    return file.take();
  }

  std::string path_ = testing::TempDir() + "metrics_" + std::to_string(::getpid()) + "_" +
                      testing::UnitTest::GetInstance()->current_test_info()->name() + ".jsonl";
};

StepMetrics step(int64_t number) {
  StepMetrics metrics;
  metrics.step = number;
  metrics.loss = 2.3025851f;
  metrics.lr = 0.001f;
  metrics.gradNorm = 1.25f;
  metrics.samples = 64;
  metrics.seconds = 0.5;
  metrics.memoryBytes = 4096;
  return metrics;
}

TEST_F(MetricsFileTest, OneObjectALine) {
  MetricsFile file = open(0);
  ASSERT_TRUE(file.write(step(1)).ok());
  EXPECT_EQ(contents(), "{\"step\": 1, \"loss\": 2.3025851, \"lr\": 0.001, \"grad_norm\": 1.25, "
                        "\"samples\": 64, \"seconds\": 0.5, \"memory\": 4096}\n");
}

TEST_F(MetricsFileTest, TokensInsteadOfSamples) {
  MetricsFile file = open(0);
  StepMetrics metrics = step(1);
  metrics.tokens = 2048;
  metrics.skipped = Skip::NonFiniteGradients;
  ASSERT_TRUE(file.write(metrics).ok());
  EXPECT_EQ(contents(), "{\"step\": 1, \"loss\": 2.3025851, \"lr\": 0.001, \"grad_norm\": 1.25, "
                        "\"tokens\": 2048, \"seconds\": 0.5, \"memory\": 4096, \"skipped\": 1}\n");
}

TEST_F(MetricsFileTest, RanksWait) {
  MetricsFile file = open(0);
  StepMetrics metrics = step(1);
  metrics.waitSeconds = 0.25;
  metrics.slowestRank = 2;
  ASSERT_TRUE(file.write(metrics).ok());
  EXPECT_TRUE(contents().ends_with(", \"wait_seconds\": 0.25, \"slowest_rank\": 2}\n"))
      << contents();
}

TEST_F(MetricsFileTest, NonFiniteIsNull) {
  MetricsFile file = open(0);
  const Metric metrics[] = {
      {"eval_loss", NAN}, {"perplexity", double{INFINITY}}, {"count", int64_t{3}}};
  ASSERT_TRUE(file.write(7, metrics).ok());
  EXPECT_EQ(contents(), "{\"step\": 7, \"eval_loss\": null, \"perplexity\": null, \"count\": 3}\n");
}

TEST_F(MetricsFileTest, ResumeDropsLaterStepsAndHalfALine) {
  setContents("{\"step\": 1, \"loss\": 3}\n{\"step\": 2, \"loss\": 2}\n{\"step\": 3, \"loss\": 1}\n"
              "{\"step\": 4, \"lo");
  MetricsFile file = open(2);
  ASSERT_TRUE(file.write(step(3)).ok());
  const std::string text = contents();
  EXPECT_TRUE(text.starts_with("{\"step\": 1, \"loss\": 3}\n{\"step\": 2, \"loss\": 2}\n"
                               "{\"step\": 3, \"loss\": 2.3025851,"))
      << text;
  EXPECT_EQ(std::ranges::count(text, '\n'), 3);
}

TEST_F(MetricsFileTest, ResumeKeepsLinesBehindALaterOne) {
  setContents("{\"step\": 1}\n{\"step\": 9}\n{\"step\": 2}\n");
  open(2);
  EXPECT_EQ(contents(), "{\"step\": 1}\n{\"step\": 2}\n");
}

TEST_F(MetricsFileTest, NothingIsLostWhenNothingIsLater) {
  setContents("{\"step\": 1}\n{\"step\": 2}\n");
  open(2);
  EXPECT_EQ(contents(), "{\"step\": 1}\n{\"step\": 2}\n");
}

TEST_F(MetricsFileTest, UnwritablePathIsEnvironment) {
  auto file = MetricsFile::open("/nonexistent/metrics.jsonl", 0);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code(), ErrorCode::Environment);
  EXPECT_NE(file.error().message().find("/nonexistent/metrics.jsonl"), std::string::npos);
}

} // namespace
} // namespace titan
