#include "runtime/device/cuda/Card.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace titan::cuda {
namespace {

Result<Card> describe(const Driver& driver, int number) {
  const std::string what = fmt::format("asking for card {}", number);
  Card card;
  card.number = number;
  TITAN_TRY(driver.need(driver.cuDeviceGet(&card.handle, number), what));
  std::array<char, 256> name{};
  TITAN_TRY(driver.need(
      driver.cuDeviceGetName(name.data(), static_cast<int>(name.size() - 1), card.handle), what));
  card.name = name.data();
  size_t bytes = 0;
  TITAN_TRY(driver.need(driver.cuDeviceTotalMem_v2(&bytes, card.handle), what));
  card.bytes = static_cast<int64_t>(bytes);
  const auto attribute = [&](CUdevice_attribute which) -> Result<int> {
    int value = 0;
    TITAN_TRY(driver.need(driver.cuDeviceGetAttribute(&value, which, card.handle), what));
    return value;
  };
  card.capability.major = TITAN_TRY(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  card.capability.minor = TITAN_TRY(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  card.sharedBytes = TITAN_TRY(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  return card;
}

Result<int> countCards(const Driver& driver) {
  int count = 0;
  TITAN_TRY(driver.need(driver.cuDeviceGetCount(&count), "counting cards"));
  return count;
}

bool runsOn(const Image& image, Capability card) {
  const std::optional<Capability> arch = Capability::of(image.arch);
  if (!arch)
    return false;
  if (image.kind == Image::Kind::Cubin)
    return arch->major == card.major && arch->minor <= card.minor;
  return image.kind == Image::Kind::Ptx && *arch <= card;
}

/// Code for the card's own kind comes before code that the driver has to assemble, and later
/// targets before earlier ones.
bool isBetter(const Image* a, const Image* b) {
  if (a->kind != b->kind)
    return a->kind == Image::Kind::Cubin;
  return Capability::of(a->arch) > Capability::of(b->arch);
}

} // namespace

std::optional<Capability> Capability::of(std::string_view arch) {
  if (!arch.starts_with("sm_"))
    return std::nullopt;
  arch.remove_prefix(3);
  int number = 0;
  const auto [end, error] = std::from_chars(arch.data(), arch.data() + arch.size(), number);
  if (error != std::errc() || end != arch.data() + arch.size() || number < 10)
    return std::nullopt;
  return Capability{number / 10, number % 10};
}

std::string Card::text() const {
  return fmt::format("card {} ({}, {})", number, name, capability.arch());
}

Result<std::vector<Card>> listCards(const Driver& driver) {
  std::vector<Card> cards;
  const int count = TITAN_TRY(countCards(driver));
  for (int number = 0; number < count; ++number)
    cards.push_back(TITAN_TRY(describe(driver, number)));
  return cards;
}

Result<Card> chooseCard(const Driver& driver, int64_t number) {
  const int count = TITAN_TRY(countCards(driver));
  if (number >= 0 && number < count)
    return describe(driver, static_cast<int>(number));
  std::string there;
  for (const Card& card : TITAN_TRY(listCards(driver)))
    there += fmt::format("{}{}", there.empty() ? ": " : ", ", card.text());
  return Error::environment("there is no card {}: the driver shows {} of them{}{}", number, count,
                            there, visibleDevices());
}

std::string textOf(const Image& image) {
  switch (image.kind) {
  case Image::Kind::Cubin:
    return "a cubin for " + image.arch;
  case Image::Kind::Ptx:
    return "PTX for " + image.arch;
  case Image::Kind::Object:
    return "host code for " + image.arch;
  }
  return "";
}

Result<std::vector<const Image*>> imagesFor(const Card& card, std::span<const Image> images) {
  std::vector<const Image*> fitting;
  for (const Image& image : images)
    if (runsOn(image, card.capability))
      fitting.push_back(&image);
  std::ranges::sort(fitting, isBetter);
  if (!fitting.empty())
    return fitting;
  std::string held;
  std::optional<Capability> lowest; // PTX runs on all cards from here on
  for (const Image& image : images) {
    held += (held.empty() ? "" : ", ") + textOf(image);
    const std::optional<Capability> arch = Capability::of(image.arch);
    if (image.kind == Image::Kind::Ptx && (!lowest || arch < lowest))
      lowest = arch;
  }
  return Error::environment("{} can run none of the job's images, which are {}: {}compile the job "
                            "with --target=cpu",
                            card.text(), held.empty() ? "none" : held,
                            lowest ? fmt::format("take a card of {} or later, or ", lowest->arch())
                                   : "");
}

} // namespace titan::cuda
