#include "runtime/device/cuda/Card.h"
#include "runtime/device/cuda/testing/FakeCard.h"

#include <gtest/gtest.h>

namespace titan::cuda {
namespace {

using titan::testing::FakeVariable;
using titan::testing::loadDriver;

Image image(Image::Kind kind, const char* arch) { return {kind, arch, 0, 0, ""}; }

const std::vector<Image> usual = {image(Image::Kind::Cubin, "sm_80"),
                                  image(Image::Kind::Cubin, "sm_90"),
                                  image(Image::Kind::Ptx, "sm_80")};

/// The images that a card of that capability runs, best first, or the error.
std::string choice(Capability capability, const std::vector<Image>& images = usual) {
  Card card;
  card.name = "T", card.capability = capability;
  const auto fitting = imagesFor(card, images);
  if (!fitting.ok())
    return fitting.error().message();
  std::string text;
  for (const Image* image : *fitting)
    text += (text.empty() ? "" : ", ") + textOf(*image);
  return text;
}

TEST(Card, CapabilitiesAreReadFromNames) {
  EXPECT_EQ(Capability::of("sm_80"), (Capability{8, 0}));
  EXPECT_EQ(Capability::of("sm_120"), (Capability{12, 0}));
  EXPECT_EQ((Capability{12, 1}.arch()), "sm_121");
  for (const char* none : {"sm_90a", "sm_", "sm_9", "compute_80", "znver5", ""})
    EXPECT_EQ(Capability::of(none), std::nullopt) << none;
}

TEST(Card, CubinsRunOnTheirMajorVersionAndPtxOnAllLaterCards) {
  EXPECT_EQ(choice({8, 0}), "a cubin for sm_80, PTX for sm_80");
  EXPECT_EQ(choice({8, 9}), "a cubin for sm_80, PTX for sm_80");
  EXPECT_EQ(choice({9, 0}), "a cubin for sm_90, PTX for sm_80");
  EXPECT_EQ(choice({10, 0}), "PTX for sm_80");
  EXPECT_EQ(choice({12, 0}), "PTX for sm_80");
  EXPECT_EQ(choice({8, 9}, {image(Image::Kind::Cubin, "sm_80"), image(Image::Kind::Ptx, "sm_80"),
                            image(Image::Kind::Ptx, "sm_86"), image(Image::Kind::Cubin, "sm_86"),
                            image(Image::Kind::Cubin, "sm_90a")}),
            "a cubin for sm_86, a cubin for sm_80, PTX for sm_86, PTX for sm_80");
}

TEST(Card, BelowEveryImageIsRefused) {
  EXPECT_EQ(
      choice({7, 5}),
      "card 0 (T, sm_75) can run none of the job's images, which are a cubin for sm_80, a "
      "cubin for sm_90, PTX for sm_80: take a card of sm_80 or later, or compile the job with "
      "--target=cpu");
  EXPECT_EQ(choice({8, 0}, {image(Image::Kind::Object, "znver5")}),
            "card 0 (T, sm_80) can run none of the job's images, which are host code for znver5: "
            "compile the job with --target=cpu");
}

TEST(Card, AreListedAndChosenByNumber) {
  const FakeVariable devices("DEVICES", "2"), capability("CAPABILITY", "9.0"),
      memory("MEMORY", "1000000");
  const Driver driver = loadDriver();
  const std::vector<Card> cards = listCards(driver).take();
  ASSERT_EQ(cards.size(), 2);
  EXPECT_EQ(cards[1].text(), "card 1 (Titan fake card, sm_90)");
  EXPECT_EQ(cards[1].bytes, 1000000);
  EXPECT_EQ(chooseCard(driver, 1).take().number, 1);
  for (int64_t number : {int64_t{2}, int64_t{-1}, int64_t{1} << 32}) {
    const Result<Card> none = chooseCard(driver, number);
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code(), ErrorCode::Environment);
    EXPECT_EQ(none.error().message(),
              fmt::format("there is no card {}: the driver shows 2 of them: card 0 (Titan fake "
                          "card, sm_90), card 1 (Titan fake card, sm_90)",
                          number));
  }
}

TEST(Card, ErrorsOfTheDriverAreKept) {
  const FakeVariable fail("FAIL", "cuDeviceTotalMem_v2:1:999");
  const Driver driver = loadDriver();
  const Result<Card> card = chooseCard(driver, 0);
  ASSERT_FALSE(card.ok());
  EXPECT_EQ(card.error().message(), "asking for card 0 failed: cuDeviceTotalMem_v2: "
                                    "CUDA_ERROR_UNKNOWN (as the fake driver says)");
}

} // namespace
} // namespace titan::cuda
