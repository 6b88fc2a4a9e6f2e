#include "runtime/device/Scalar.h"

#include "runtime/program/Element.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace titan {
namespace {

template <typename T> void store(char* address, ScalarValue value) {
  const T converted = std::visit([](auto v) { return static_cast<T>(v); }, value);
  std::memcpy(address, &converted, sizeof converted);
}

} // namespace

bool writeScalar(DType dtype, char* address, ScalarValue value) {
  switch (dtype) {
  case DType::F64:
    store<double>(address, value);
    return true;
  case DType::F32:
    store<float>(address, value);
    return true;
  case DType::I64:
    store<int64_t>(address, value);
    return true;
  case DType::I32:
    store<int32_t>(address, value);
    return true;
  case DType::Bool:
    store<bool>(address, value);
    return true;
  default:
    return false;
  }
}

double readScalar(DType dtype, const char* address) {
  switch (dtype) {
  case DType::F64:
  case DType::F32:
  case DType::BF16:
  case DType::I64:
  case DType::I32:
    return readElement(dtype, address);
  case DType::Bool:
    return *address != 0;
  default:
    return std::numeric_limits<double>::quiet_NaN();
  }
}

bool Scalar::write(ScalarValue value) const {
  if (!slot_)
    return writeScalar(dtype_, address_, value);
  char bytes[ScalarPage::slotBytes];
  if (!writeScalar(dtype_, bytes, value))
    return false;
  const auto size = static_cast<size_t>(slot_->bytes);
  // What the device has already is not sent again.
  if (!slot_->written || std::memcmp(address_, bytes, size) != 0) {
    std::memcpy(address_, bytes, size);
    slot_->written = slot_->unsent = true;
  }
  return true;
}

Result<Scalar> ScalarPage::add(int64_t offset, DType dtype) {
  const int64_t bytes = byteSize(dtype);
  if (const std::span<char> window = device_->window(offset, bytes); !window.empty())
    return Scalar(dtype, window.data(), nullptr);
  const auto same = [&](const Scalar::Slot& slot) {
    return slot.offset == offset && slot.bytes == bytes;
  };
  if (const auto found = std::ranges::find_if(slots_, same); found != slots_.end())
    return Scalar(dtype, found->address, &*found);
  constexpr size_t most = pageBytes / slotBytes;
  if (slots_.size() == most)
    return Error::internal("the program has more than {} scalars", most);
  if (page_.empty()) {
    page_ = TITAN_TRY(device_->hostBuffer(pageBytes * static_cast<int64_t>(1 + mostRuns)));
    slots_.reserve(most);
  }
  Scalar::Slot& slot = slots_.emplace_back();
  slot.offset = offset;
  slot.bytes = bytes;
  slot.address = page_.data() + static_cast<int64_t>(slots_.size() - 1) * slotBytes;
  TITAN_TRY(refresh(offset, bytes));
  return Scalar(dtype, slot.address, &slot);
}

std::span<char> ScalarPage::onTheWay(const Scalar::Slot& slot, uint64_t run) const {
  const auto page = static_cast<int64_t>(1 + run % mostRuns) * pageBytes;
  return {slot.address + page, static_cast<size_t>(slot.bytes)};
}

Status ScalarPage::send(uint64_t run) {
  for (Scalar::Slot& slot : slots_)
    if (slot.unsent) {
      const std::span<char> bytes = onTheWay(slot, run);
      std::memcpy(bytes.data(), slot.address, bytes.size());
      TITAN_TRY(device_->upload(slot.offset, bytes));
      slot.unsent = false;
    }
  return {};
}

Status ScalarPage::fetch(uint64_t run) {
  for (const Scalar::Slot& slot : slots_)
    if (!slot.written)
      TITAN_TRY(device_->download(slot.offset, onTheWay(slot, run)));
  fetched_[run % mostRuns] = slots_.size();
  return {};
}

void ScalarPage::take(uint64_t run) {
  for (const Scalar::Slot& slot : std::span(slots_).first(fetched_[run % mostRuns]))
    if (!slot.written) {
      const std::span<const char> bytes = onTheWay(slot, run);
      std::memcpy(slot.address, bytes.data(), bytes.size());
    }
}

Status ScalarPage::refresh(int64_t offset, int64_t bytes) {
  for (Scalar::Slot& slot : slots_)
    if (slot.offset < offset + bytes && offset < slot.offset + slot.bytes) {
      slot.unsent = false;
      TITAN_TRY(device_->download(slot.offset, {slot.address, static_cast<size_t>(slot.bytes)}));
      TITAN_TRY(device_->wait(device_->record()));
    }
  return {};
}

} // namespace titan
