// Copies from a card's arena to the host by a stream of their own, beside the device's.
#pragma once

#include "runtime/device/Device.h"
#include "runtime/device/cuda/Card.h"
#include "runtime/device/cuda/CardMemory.h"
#include "runtime/device/cuda/Owned.h"

#include <functional>

namespace titan::cuda {

class CardReader final : public StateReader {
public:
  /// Has the device's stream wait for an event.
  using Hold = std::function<Status(CUevent)>;

  /// In the current context, which is `context`. All but `hold` outlive the reader.
  static Result<std::unique_ptr<CardReader>> create(const Driver& driver, CUcontext context,
                                                    const Card& card, const CardMemory& memory,
                                                    Hold hold);

  Status download(int64_t offset, std::span<char> into) override;
  Status wait() override;
  Status hold() override { return hold_(done_.get()); }

private:
  CardReader(const Driver& driver, CUcontext context, const Card& card, const CardMemory& memory,
             Hold hold)
      : driver_(&driver), context_(context), card_(&card), memory_(&memory),
        hold_(std::move(hold)) {}
  std::string what() const { return "copying states from " + card_->text(); }
  Status need(Answer answer) const { return driver_->need(answer, what()); }

  const Driver* driver_;
  CUcontext context_;
  const Card* card_;
  const CardMemory* memory_;
  Hold hold_;
  OwnedStream stream_;
  OwnedEvent done_; ///< all downloads
};

} // namespace titan::cuda
