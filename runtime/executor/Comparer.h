// Runs each command of a function on the host, too: by the kernel's host code, on the inputs that
// the device has before it, and compares what the two write. The first element that is farther off
// than its bound is kept, with both values; what the device goes on with is its own.
//
// A bound follows the data (Comparison, runtime/program/Program.h): code of its own for fused
// kernels, the host code on magnitudes for products and sums. A result in bf16 of these may
// besides be one place off.
#pragma once

#include "runtime/device/CommandObserver.h"
#include "runtime/device/CommandSlots.h"
#include "runtime/device/Device.h"
#include "runtime/device/Walk.h"
#include "runtime/host/ThreadPool.h"

#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

namespace titan {

class Comparer final : public CommandObserver {
public:
  /// Element `index` of operand `operand`, counted as the command lists them.
  struct Difference {
    std::string label, function;
    uint32_t command = 0;
    size_t operand = 0;
    std::string index; ///< "[3, 17]"
    double device = 0, host = 0, bound = 0;
  };
  struct Summary {
    int64_t commands = 0, elements = 0; ///< compared
    /// The largest |device - host| / bound where bounds are not 0, and the command's label.
    double largestShare = 0;
    std::string label;
  };

  /// `program` has comparisons; `code` is its host code, that for bounds behind it. All outlive the
  /// comparer. Internal: `code` is of another length than the program says.
  static Result<std::unique_ptr<Comparer>> create(const Program& program,
                                                  std::span<const KernelFunction> code,
                                                  Device& device, ThreadPool& pool);

  void beforeFunction(const Function& function) override;
  void before(const Function& function, uint32_t command) override;
  void after(const Function& function, uint32_t command) override;

  /// The errors of the device and of memory that were met while a function ran.
  const Status& status() const { return status_; }
  /// The first one; from there on nothing is compared.
  const std::optional<Difference>& difference() const { return difference_; }
  const Summary& summary() const { return summary_; }

private:
  /// Bytes of the arena that operands of the command share, and where they are in a copy.
  struct Region {
    int64_t begin = 0, end = 0, at = 0;
  };
  /// The regions of a command as host code takes them: aligned as the arena is.
  class Copy {
  public:
    void resize(int64_t bytes);
    char* data() const { return data_.get(); }

  private:
    static constexpr std::align_val_t alignment{256};
    struct Free {
      void operator()(char* data) const { operator delete(data, alignment); }
    };
    std::unique_ptr<char, Free> data_;
    int64_t bytes_ = 0;
  };
  /// A function with its addresses as offsets in the arena.
  struct Prepared {
    CommandSlots slots;
    std::vector<RepeatLink> links;
  };

  Comparer(const Program& program, std::span<const KernelFunction> code, Device& device,
           ThreadPool& pool);
  /// Brings the repeats' counters to the command.
  void follow(const Prepared& prepared, uint32_t command);
  /// Operands of the host code, which come first: a library's workspace is behind them.
  size_t comparedOperands(const Command& command) const;
  void layOut(const Command& command, const CommandSlots::Command& slots);
  Status fetch(Copy& copy);
  void copyInputs(Copy& copy);
  /// Where the operand at `offset` of the arena is in a copy.
  char* addressIn(const Copy& copy, int64_t offset) const;
  void runOnHost(KernelFunction code, int64_t units, const Copy& copy, std::span<char* const> more);
  Status compare(uint32_t index);
  void compareKernel(uint32_t index, uint32_t kernel);
  void findBounds(const Comparison& comparison, KernelFunction code);
  void findMagnitudes(const Comparison& comparison, KernelFunction code);
  void compareOperand(uint32_t index, size_t operand, const ComparedOperand& how);
  void keep(uint32_t index, size_t operand, const ComparedOperand& how, int64_t element,
            double device, double host, double bound);

  const Program* program_;
  std::span<const KernelFunction> code_;
  std::vector<KernelFunction> bounds_; ///< by kernel; null: none
  Device* device_;
  ThreadPool* pool_;
  std::map<const Function*, Prepared> prepared_;
  // Of the command that runs.
  const Function* function_ = nullptr;
  const Command* command_ = nullptr;
  const CommandSlots::Command* slots_ = nullptr;
  RepeatCounters counters_{};
  std::optional<uint32_t> last_; ///< that was seen before
  std::vector<Region> regions_;
  int64_t copyBytes_ = 0;
  Copy inputs_;                            ///< what the device had before it
  Copy found_, host_, scratch_;            ///< what it has now, what the host makes of `inputs_`
  std::vector<std::vector<float>> limits_; ///< by operand: of elements that are Bounded
  Status status_;
  std::optional<Difference> difference_;
  Summary summary_;
};

} // namespace titan
