#include "runtime/metrics/Progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace titan {
namespace {

/// What a progress line wrote to a stream that is not a terminal.
class Captured {
public:
  ~Captured() { std::fclose(stream_); }
  std::FILE* stream() { return stream_; }
  std::string text() {
    std::rewind(stream_);
    std::string text;
    for (int c; (c = std::fgetc(stream_)) != EOF;)
      text += static_cast<char>(c);
    return text;
  }

private:
  std::FILE* stream_ = std::tmpfile();
};

StepMetrics step(int64_t number) {
  StepMetrics metrics;
  metrics.step = number;
  metrics.loss = 0.4312f;
  metrics.lr = 1e-3f;
  metrics.gradNorm = 1.24f;
  metrics.samples = 6400;
  metrics.seconds = 0.1;
  metrics.memoryBytes = 12 << 20;
  return metrics;
}

TEST(Progress, ShowsEverything) {
  Captured captured;
  ProgressLine line(captured.stream(), {.steps = 1000, .flopsPerStep = 41, .peakFlops = 1000});
  EXPECT_EQ(line.format(step(580)), "step 580/1000  loss 0.4312  lr 1.00e-03  grad 1.24  "
                                    "64.0k samples/s  MFU 41.0%  mem 12.0 MiB  eta 0:42");
}

TEST(Progress, NoMfuWithoutFlopOfTheModel) {
  Captured captured;
  ProgressLine line(captured.stream(), {.steps = 1000, .peakFlops = 1000});
  EXPECT_EQ(line.format(step(580)).find("MFU"), std::string::npos);
}

TEST(Progress, TokensWithoutPeak) {
  Captured captured;
  ProgressLine line(captured.stream(), {.steps = 100000});
  StepMetrics metrics = step(1);
  metrics.tokens = 200000;
  EXPECT_EQ(line.format(metrics),
            "step 1/100000  loss 0.4312  lr 1.00e-03  grad 1.24  2.00M tokens/s  mem 12.0 MiB  "
            "eta 2:46:40");
}

TEST(Progress, SkippedStepsStayInTheLine) {
  Captured captured;
  ProgressLine line(captured.stream(), {.steps = 10});
  StepMetrics metrics = step(1);
  metrics.skipped = Skip::NonFiniteGradients;
  line.update(metrics);
  EXPECT_TRUE(line.format(metrics).ends_with("  skipped 1: non-finite gradients"));
  metrics = step(2);
  metrics.skipped = Skip::NoValidTargets;
  line.update(metrics);
  line.update(step(3));
  EXPECT_TRUE(line.format(step(3)).ends_with("  skipped 2: no valid targets"));
}

TEST(Progress, ASaveThatGoesOnIsInTheLine) {
  Captured captured;
  ProgressLine line(captured.stream(), {.steps = 10});
  line.setSave(200, 0.64);
  EXPECT_TRUE(line.format(step(1)).ends_with("  ckpt 200 64%"));
  line.setSave(200, 1);
  EXPECT_TRUE(line.format(step(2)).ends_with("  ckpt 200 100%"));
  line.clearSave();
  EXPECT_EQ(line.format(step(3)).find("ckpt"), std::string::npos);
}

TEST(Progress, PlainLinesAreFew) {
  Captured captured;
  {
    ProgressLine line(captured.stream(), {.steps = 5000});
    for (int64_t i = 1; i <= 5000; ++i)
      line.update(step(i));
  }
  const std::string text = captured.text();
  EXPECT_TRUE(text.starts_with("step 1/5000")) << text;
  EXPECT_NE(text.find("step 5000/5000"), std::string::npos);
  EXPECT_LE(std::ranges::count(text, '\n'), 10);
  EXPECT_EQ(text.find('\r'), std::string::npos);
}

} // namespace
} // namespace titan
