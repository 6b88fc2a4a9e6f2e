// Scalars that host and device share: hyperparameters that go in, metrics and counters that come
// out. Where the device has a window a scalar is an address. Elsewhere it is a slot of one page of
// host memory: what the host wrote goes to the device before the next run, the rest comes back
// after each. Each of a few runs that go on at once has a page of its own for both ways.
#pragma once

#include "runtime/device/Device.h"

#include <array>
#include <variant>
#include <vector>

namespace titan {

using ScalarValue = std::variant<int64_t, double>;

/// Writes `value` at `address` in `dtype` (F64, F32, I64, I32, Bool); false for other dtypes.
bool writeScalar(DType dtype, char* address, ScalarValue value);
/// Reads F64, F32, BF16, I64, I32 or Bool; NaN for other dtypes.
double readScalar(DType dtype, const char* address);

/// A handle on one scalar, or on nothing.
class Scalar {
public:
  Scalar() = default;

  bool exists() const { return address_ != nullptr; }
  DType dtype() const { return dtype_; }
  /// As the last run left it, or the last write; `absent` for a handle on nothing.
  double read(double absent = 0) const { return address_ ? readScalar(dtype_, address_) : absent; }
  int64_t count() const { return static_cast<int64_t>(read()); }
  /// For the next run; false for a dtype that has no scalars.
  bool write(ScalarValue value) const;

private:
  friend class ScalarPage;
  /// What the page knows of a slot.
  struct Slot {
    int64_t offset = 0, bytes = 0; ///< in the arena
    char* address = nullptr;       ///< on the page
    bool written = false;          ///< by the host: it does not come back
    bool unsent = false;
  };
  Scalar(DType dtype, char* address, Slot* slot) : dtype_(dtype), address_(address), slot_(slot) {}

  DType dtype_ = DType::F32;
  char* address_ = nullptr;
  Slot* slot_ = nullptr; ///< null: `address_` is in the window
};

class ScalarPage {
public:
  static constexpr int64_t pageBytes = 4096, slotBytes = 8;
  /// That may go on at once.
  static constexpr uint64_t mostRuns = 4;

  explicit ScalarPage(Device& device) : device_(&device) {}

  /// The scalar of `dtype` at `offset`, with the value that it has now. Internal: the page is full.
  Result<Scalar> add(int64_t offset, DType dtype);
  /// Begins to upload what the host wrote since the last call, before run `run`. Runs are numbered
  /// from 0, and the one `mostRuns` before has been waited for.
  Status send(uint64_t run);
  /// Begins to download everything else, behind the run.
  Status fetch(uint64_t run);
  /// Takes what fetch() has brought: scalars read it.
  void take(uint64_t run);
  /// Reads again what lies in bytes [offset, offset + bytes) of the arena; done on return.
  Status refresh(int64_t offset, int64_t bytes);

private:
  /// Where the slot travels for that run.
  std::span<char> onTheWay(const Scalar::Slot& slot, uint64_t run) const;

  Device* device_;
  std::span<char> page_;                      ///< what scalars read, then a page a run
  std::array<size_t, mostRuns> fetched_ = {}; ///< slots, by run % mostRuns
  std::vector<Scalar::Slot> slots_;           ///< never grows beyond what it was made for
};

} // namespace titan
