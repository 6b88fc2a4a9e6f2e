#include "runtime/executor/Comparer.h"

#include "runtime/program/Element.h"
#include "runtime/program/Text.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace titan {
namespace {

/// Copies keep the alignment that offsets have in an arena; host code may touch a line behind.
constexpr int64_t alignment = 256, behind = 256;

constexpr double bf16Place = 0x1p-7; ///< a unit in the last place, at most
/// Magnitudes are summed with roundings, too.
constexpr double slack = 1 + 0x1p-6;

/// Clears the signs of floats; the other numbers stay.
void takeMagnitudes(DType dtype, char* data, int64_t bytes) {
  if (!isFloat(dtype))
    return;
  const int64_t size = byteSize(dtype);
  for (int64_t at = size - 1; at < bytes; at += size) // little-endian
    data[at] = static_cast<char>(data[at] & 0x7f);
}

/// "[3, 17]" of row-major element `element`.
std::string coordinatesIn(const Shape& shape, int64_t element, int64_t elements) {
  if (shape.empty() || elementCount(shape) != elements)
    return fmt::format("[{}]", element);
  Shape coordinates(shape.size());
  for (size_t i = shape.size(); i-- > 0; element /= shape[i])
    coordinates[i] = element % shape[i];
  return toString(coordinates);
}

} // namespace

void Comparer::Copy::resize(int64_t bytes) {
  if (bytes <= bytes_)
    return;
  data_.reset(static_cast<char*>(operator new(static_cast<size_t>(bytes), alignment)));
  bytes_ = bytes;
}

Comparer::Comparer(const Program& program, std::span<const KernelFunction> code, Device& device,
                   ThreadPool& pool)
    : program_(&program), code_(code), device_(&device), pool_(&pool) {}

Result<std::unique_ptr<Comparer>> Comparer::create(const Program& program,
                                                   std::span<const KernelFunction> code,
                                                   Device& device, ThreadPool& pool) {
  std::unique_ptr<Comparer> comparer(new Comparer(program, code, device, pool));
  size_t next = program.kernels.size();
  for (const Comparison& comparison : program.comparisons)
    comparer->bounds_.push_back(comparison.boundUnits > 0 && next < code.size() ? code[next++]
                                                                                : nullptr);
  const auto wanted = program.kernels.size() +
                      std::ranges::count_if(program.comparisons,
                                            [](const auto& each) { return each.boundUnits > 0; });
  if (code.size() != wanted)
    return Error::internal("the job has {} functions to compare with, its table names {}",
                           code.size(), wanted);
  for (const Function& function : program.functions)
    comparer->prepared_.emplace(
        &function, Prepared{CommandSlots(function, coordinatesOf(0, program.mesh), /*arena=*/0),
                            linkRepeats(function)});
  return comparer;
}

void Comparer::beforeFunction(const Function& function) {
  function_ = &function;
  counters_ = {};
  last_.reset();
}

void Comparer::follow(const Prepared& prepared, uint32_t index) {
  const std::span<const RepeatLink> links = prepared.links;
  const std::vector<Command>& commands = function_->commands;
  if (commands[index].kind == CommandKind::Repeat)
    counters_[links[index].depth] = 0;
  if (!last_ || index > *last_)
    return;
  // Back again: the innermost repeat that holds both has begun another iteration.
  for (uint32_t i = index; i-- > 0;)
    if (commands[i].kind == CommandKind::Repeat && links[i].partner > *last_) {
      ++counters_[links[i].depth];
      return;
    }
}

size_t Comparer::comparedOperands(const Command& command) const {
  switch (command.kind) {
  case CommandKind::Kernel:
    return program_->comparisons[command.target].operands.size();
  case CommandKind::Library:
    return program_->comparisons[program_->libraryCalls[command.target].fallback].operands.size();
  default:
    return command.operands.size();
  }
}

void Comparer::layOut(const Command& command, const CommandSlots::Command& slots) {
  regions_.clear();
  for (size_t i = 0; i < comparedOperands(command); ++i)
    regions_.push_back({slots.operands[i], slots.operands[i] + command.operands[i].bytes, 0});
  std::ranges::sort(regions_, {}, &Region::begin);
  size_t count = 0;
  for (const Region& region : regions_)
    if (count > 0 && region.begin <= regions_[count - 1].end)
      regions_[count - 1].end = std::max(regions_[count - 1].end, region.end);
    else
      regions_[count++] = region;
  regions_.resize(count);
  copyBytes_ = 0;
  for (Region& region : regions_) {
    region.at = copyBytes_ + region.begin % alignment;
    copyBytes_ =
        (region.at + region.end - region.begin + behind) / alignment * alignment + alignment;
  }
}

Status Comparer::fetch(Copy& copy) {
  copy.resize(copyBytes_);
  for (const Region& region : regions_)
    TITAN_TRY(device_->download(
        region.begin, {copy.data() + region.at, static_cast<size_t>(region.end - region.begin)}));
  return device_->wait(device_->record());
}

void Comparer::copyInputs(Copy& copy) {
  copy.resize(copyBytes_);
  std::memcpy(copy.data(), inputs_.data(), static_cast<size_t>(copyBytes_));
}

char* Comparer::addressIn(const Copy& copy, int64_t offset) const {
  const auto region = std::ranges::upper_bound(regions_, offset, {}, &Region::begin) - 1;
  return copy.data() + region->at + (offset - region->begin);
}

void Comparer::before(const Function& function, uint32_t index) {
  if (!status_.ok() || difference_)
    return;
  const Prepared& prepared = prepared_.at(&function);
  follow(prepared, index);
  last_ = index;
  command_ = &function.commands[index];
  slots_ = &prepared.slots.commands()[index];
  for (const Varying& varying : slots_->varying)
    varying.update(counters_);
  layOut(*command_, *slots_);
  status_ = fetch(inputs_);
}

void Comparer::after(const Function& function, uint32_t index) {
  last_ = index;
  if (status_.ok() && !difference_ && function.commands[index].kind != CommandKind::EndRepeat)
    status_ = compare(index);
}

Status Comparer::compare(uint32_t index) {
  TITAN_TRY(fetch(found_));
  copyInputs(host_);
  limits_.clear();
  ++summary_.commands;
  const auto wholeOperand = [&](size_t operand) {
    const int64_t bytes = command_->operands[operand].bytes;
    compareOperand(index, operand, {DType::U8, {bytes}, Tolerance::Equal, 0});
  };
  char* first = command_->operands.empty() ? nullptr : addressIn(host_, slots_->operands[0]);
  switch (command_->kind) {
  case CommandKind::Kernel:
    compareKernel(index, command_->target);
    break;
  case CommandKind::Library:
    compareKernel(index, program_->libraryCalls[command_->target].fallback);
    break;
  case CommandKind::Copy:
    std::memmove(first, addressIn(host_, slots_->operands[1]),
                 static_cast<size_t>(command_->operands[0].bytes));
    wholeOperand(0);
    break;
  case CommandKind::Zero:
    std::memset(first, 0, static_cast<size_t>(command_->operands[0].bytes));
    wholeOperand(0);
    break;
  case CommandKind::Repeat:
  case CommandKind::EndRepeat:
  case CommandKind::CollectiveStart: // a program for cards has none
  case CommandKind::CollectiveWait:
    --summary_.commands;
    break;
  }
  return {};
}

void Comparer::runOnHost(KernelFunction code, int64_t units, const Copy& copy,
                         std::span<char* const> more) {
  std::vector<char*> operands;
  for (size_t i = 0; i < comparedOperands(*command_); ++i)
    operands.push_back(addressIn(copy, slots_->operands[i]));
  operands.insert(operands.end(), more.begin(), more.end());
  pool_->parallelFor(units, 1, [&](int64_t begin, int64_t end) {
    code(operands.data(), slots_->scalars.data(), begin, end);
  });
}

void Comparer::compareKernel(uint32_t index, uint32_t kernel) {
  const Comparison& comparison = program_->comparisons[kernel];
  runOnHost(code_[kernel], command_->launch.units, host_, {});
  limits_.resize(comparison.operands.size());
  if (bounds_[kernel])
    findBounds(comparison, bounds_[kernel]);
  if (std::ranges::any_of(comparison.operands, [](const ComparedOperand& operand) {
        return operand.tolerance == Tolerance::Magnitude;
      }))
    findMagnitudes(comparison, code_[kernel]);
  for (size_t i = 0; i < comparison.operands.size() && !difference_; ++i)
    if (command_->operands[i].access != Access::Read)
      compareOperand(index, i, comparison.operands[i]);
}

void Comparer::findBounds(const Comparison& comparison, KernelFunction code) {
  copyInputs(scratch_);
  std::vector<char*> more;
  for (size_t i = 0; i < comparison.operands.size(); ++i) {
    const ComparedOperand& operand = comparison.operands[i];
    if (operand.tolerance != Tolerance::Bounded)
      continue;
    // What no point of the kernel maps to keeps its value.
    limits_[i].assign(static_cast<size_t>(command_->operands[i].bytes / byteSize(operand.dtype)),
                      0);
    more.push_back(reinterpret_cast<char*>(limits_[i].data()));
  }
  runOnHost(code, comparison.boundUnits, scratch_, more);
}

void Comparer::findMagnitudes(const Comparison& comparison, KernelFunction code) {
  copyInputs(scratch_);
  for (size_t i = 0; i < comparison.operands.size(); ++i)
    takeMagnitudes(comparison.operands[i].dtype, addressIn(scratch_, slots_->operands[i]),
                   command_->operands[i].bytes);
  runOnHost(code, command_->launch.units, scratch_, {});
  for (size_t i = 0; i < comparison.operands.size(); ++i) {
    const ComparedOperand& operand = comparison.operands[i];
    if (operand.tolerance != Tolerance::Magnitude)
      continue;
    const char* sums = addressIn(scratch_, slots_->operands[i]);
    const char* host = addressIn(host_, slots_->operands[i]);
    const int64_t size = byteSize(operand.dtype), bytes = command_->operands[i].bytes;
    for (int64_t at = 0; at < bytes; at += size) {
      double bound = slack * operand.factor * readElement(operand.dtype, sums + at);
      if (operand.dtype == DType::BF16)
        bound += bf16Place * std::abs(readElement(operand.dtype, host + at));
      limits_[i].push_back(static_cast<float>(bound));
    }
  }
}

void Comparer::compareOperand(uint32_t index, size_t number, const ComparedOperand& how) {
  if (how.tolerance == Tolerance::Any)
    return;
  const int64_t size = byteSize(how.dtype), bytes = command_->operands[number].bytes;
  const char* device = addressIn(found_, slots_->operands[number]);
  const char* host = addressIn(host_, slots_->operands[number]);
  double scale = 0;
  if (how.tolerance == Tolerance::Scale)
    for (int64_t at = 0; at < bytes; at += size)
      scale = std::fmax(scale, std::abs(readElement(how.dtype, host + at)));
  summary_.elements += bytes / size;
  const std::vector<float>* limits = number < limits_.size() ? &limits_[number] : nullptr;
  for (int64_t at = 0; at < bytes; at += size) {
    if (std::memcmp(device + at, host + at, static_cast<size_t>(size)) == 0)
      continue;
    const double a = readElement(how.dtype, device + at), b = readElement(how.dtype, host + at);
    if (isFloat(how.dtype) && (a == b || (std::isnan(a) && std::isnan(b))))
      continue;
    double bound = how.factor * scale;
    if (limits && !limits->empty())
      bound = (*limits)[static_cast<size_t>(at / size)];
    // A bound that is no number is none: inputs were infinite, or nothing is known.
    const bool isFree = !std::isfinite(bound) && std::isnan(a) == std::isnan(b);
    const double share = std::abs(a - b) / bound;
    if (!isFree && !(share <= 1)) {
      keep(index, number, how, at / size, a, b, bound);
      return;
    }
    if (!isFree && share > summary_.largestShare) {
      summary_.largestShare = share;
      summary_.label = labelOf(*program_, *command_);
    }
  }
}

void Comparer::keep(uint32_t index, size_t number, const ComparedOperand& how, int64_t element,
                    double device, double host, double bound) {
  const int64_t elements = command_->operands[number].bytes / byteSize(how.dtype);
  difference_ = Difference{.label = labelOf(*program_, *command_),
                           .function = function_->name,
                           .command = index,
                           .operand = number,
                           .index = coordinatesIn(how.shape, element, elements),
                           .device = device,
                           .host = host,
                           .bound = bound};
}

} // namespace titan
