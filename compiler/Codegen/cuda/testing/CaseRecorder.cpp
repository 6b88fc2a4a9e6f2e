#include "compiler/Codegen/cuda/testing/CaseRecorder.h"

#include "dialects/Kernel/Kernel.h"
#include "runtime/program/Text.h"

#include "mlir/IR/BuiltinTypes.h"
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

using namespace mlir;

namespace titan::codegen::cuda::testing {
namespace {

/// A card's sums of `mma.sync` have an order of its own. A product of them is no further off than
/// that; where its rounded result is multiplied again, one rounding to bf16 may differ.
constexpr double productBound = 0x1p-16, chainBound = 0x1p-8;

double boundOf(const std::string& ptx, Operation* kernel) {
  if (ptx.find("mma.sync") == std::string::npos)
    return 0;
  auto call = dyn_cast<kernel::CallOp>(kernel);
  return call && call.getGemm() ? productBound : chainBound;
}

DType dtypeOf(Value operand) {
  Type type = getElementTypeOrSelf(operand.getType());
  if (type.isF64())
    return DType::F64;
  if (type.isF32())
    return DType::F32;
  if (type.isBF16())
    return DType::BF16;
  if (type.isInteger(64) || type.isIndex())
    return DType::I64;
  if (type.isInteger(32))
    return DType::I32;
  return DType::U8;
}

std::string currentTest() {
  const ::testing::TestInfo* info = ::testing::UnitTest::GetInstance()->current_test_info();
  return fmt::format("{}.{}", info->test_suite_name(), info->name());
}

std::string bytesAt(ptx::Memory& memory, uint64_t address) {
  const ptx::Memory::Allocation* allocation = memory.find(address);
  return {allocation->bytes.get(), static_cast<size_t>(allocation->size)};
}

/// Of all allocations that operands lie in.
int64_t bytesOf(std::span<const uint64_t> operands, ptx::Memory& memory) {
  std::map<uint64_t, int64_t> allocations;
  for (uint64_t operand : operands)
    if (const ptx::Memory::Allocation* allocation = memory.find(operand))
      allocations[allocation->address] = static_cast<int64_t>(allocation->size);
  int64_t bytes = 0;
  for (const auto& [address, size] : allocations)
    bytes += size;
  return bytes;
}

class WriteAtEnd : public ::testing::Environment {
public:
  void TearDown() override {
    const Status written = CaseRecorder::get()->write();
    EXPECT_TRUE(written.ok()) << written.error().message();
  }
};

/// The environment of the tests lives as long as they do, and is added before the first of them.
[[maybe_unused]] const bool recordsAtEnd = [] {
  if (std::getenv("TITAN_RECORD_CASES"))
    ::testing::AddGlobalTestEnvironment(new WriteAtEnd());
  return true;
}();

/// Operand `i` of the entry points: those of a product are A, B, C and then the bias.
Value valueOf(Operation* kernel, size_t i) {
  auto call = dyn_cast<kernel::CallOp>(kernel);
  const bool hasBias = call && call.getGemm() && call.getGemm().getBias();
  return kernel->getOperand(hasBias && i >= 2 ? 5 - i : i);
}

} // namespace

CaseRecorder* CaseRecorder::get() {
  static const std::unique_ptr<CaseRecorder> recorder = [] {
    const char* path = std::getenv("TITAN_RECORD_CASES");
    const char* arch = std::getenv("TITAN_RECORD_ARCH");
    const char* bytes = std::getenv("TITAN_RECORD_BYTES");
    return std::unique_ptr<CaseRecorder>(
        path ? new CaseRecorder(path, arch ? arch : "", bytes ? std::atoll(bytes) : 1 << 20)
             : nullptr);
  }();
  return recorder.get();
}

CaseRecorder::CaseRecorder(std::string path, std::string arch, int64_t mostBytes)
    : path_(std::move(path)), arch_(std::move(arch)), mostBytes_(mostBytes) {
  if (arch_.empty())
    return;
  assembler_ = Assembler::find();
  if (!assembler_)
    fmt::print("no cubins are recorded: {}\n", Assembler::whatIsMissing());
}

cases::CaseModule CaseRecorder::moduleOf(const std::string& ptx) const {
  if (!assembler_)
    return {ptx, "", ""};
  Result<Cubin> cubin = assembler_->assemble(ptx, arch_);
  EXPECT_TRUE(cubin.ok()) << cubin.error().message();
  return {ptx, arch_, cubin.ok() ? cubin->bytes : ""};
}

void CaseRecorder::begin(const std::string& ptx, Operation* kernel, llvm::ArrayRef<Entry> entries,
                         std::span<const uint64_t> operands, std::span<const int64_t> scalars,
                         ptx::Memory& memory) {
  case_ = {};
  addresses_.clear();
  case_.name = fmt::format("{} {}", currentTest(), file_.cases.size());
  case_.bound = boundOf(ptx, kernel);
  case_.scalars.assign(scalars.begin(), scalars.end());
  for (const Entry& entry : entries)
    case_.launches.push_back({entry.name, entry.blocks, entry.threads, entry.sharedBytes});
  if (bytesOf(operands, memory) > mostBytes_) {
    ++large_;
    return;
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    const ptx::Memory::Allocation* allocation = memory.find(operands[i]);
    ASSERT_NE(allocation, nullptr) << "operand " << i << " of " << case_.name;
    const auto known = llvm::find(addresses_, allocation->address);
    const auto region = static_cast<uint64_t>(known - addresses_.begin());
    if (known == addresses_.end()) {
      addresses_.push_back(allocation->address);
      case_.regions.push_back({bytesAt(memory, allocation->address), ""});
    }
    case_.operands.push_back({region, static_cast<int64_t>(operands[i] - allocation->address),
                              entries[0].operands[i].bytes, dtypeOf(valueOf(kernel, i))});
  }
  const std::string digest = digest128(ptx);
  if (!code_.contains(digest))
    code_[digest] = file_.add(moduleOf(ptx));
  case_.module = code_[digest];
}

void CaseRecorder::end(ptx::Memory& memory) {
  if (addresses_.empty())
    return;
  for (size_t i = 0; i < addresses_.size(); ++i)
    case_.regions[i].after = bytesAt(memory, addresses_[i]);
  cases::CaseFile alone;
  alone.cases.push_back(case_);
  alone.cases[0].name.clear();
  if (known_.insert(digest128(serialize(alone))).second)
    file_.cases.push_back(std::move(case_));
  else
    ++repeated_;
}

Status CaseRecorder::write() const {
  const std::string bytes = serialize(file_);
  std::ofstream stream(path_, std::ios::binary);
  stream << bytes;
  if (!stream.flush())
    return Error::environment("cannot write '{}'", path_);
  fmt::print("{}: {} cases of {} modules, {}; {} repeated, {} too large\n", path_,
             file_.cases.size(), file_.modules.size(),
             readableBytes(static_cast<int64_t>(bytes.size())), repeated_, large_);
  return {};
}

} // namespace titan::codegen::cuda::testing
