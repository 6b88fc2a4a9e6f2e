#include "compiler/Codegen/cpu/testing/KernelCase.h"

#include "compiler/Codegen/cpu/CpuFeatures.h"
#include "runtime/program/DType.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

namespace titan::codegen::testing {
namespace {

// Bytes behind each buffer that no kernel may touch.
constexpr size_t guardBytes = 256;
constexpr char guardByte = 0x5a;

std::string typeOf(const OperandSpec& operand) {
  std::string text = "memref<";
  for (int64_t extent : operand.shape)
    text += std::to_string(extent) + "x";
  return text + operand.element + ">";
}

std::string moduleText(const KernelSpec& spec) {
  std::string arguments, ins, inTypes, outs, outTypes, maps, space, scalars;
  auto append = [](std::string& list, const std::string& item) {
    list += (list.empty() ? "" : ", ") + item;
  };
  size_t count = 0;
  auto operand = [&](const OperandSpec& o, std::string& names, std::string& types) {
    std::string name = "%p" + std::to_string(count++);
    append(arguments, name + ": " + typeOf(o));
    append(names, name);
    append(types, typeOf(o));
    append(maps, "affine_map<" + o.map + ">");
  };
  for (const OperandSpec& in : spec.ins)
    operand(in, ins, inTypes);
  for (const OperandSpec& out : spec.outs)
    operand(out, outs, outTypes);
  for (unsigned i = 0; i < spec.scalars; ++i) {
    append(arguments, "%s" + std::to_string(i) + ": index");
    append(scalars, "%s" + std::to_string(i));
  }
  for (int64_t extent : spec.space)
    append(space, std::to_string(extent));
  std::string text =
      "func.func @f(" + arguments + ") {\n  kernel.fused " + spec.kernelClass + " [" + space + "]";
  if (!ins.empty())
    text += " ins(" + ins + " : " + inTypes + ")";
  text += " outs(" + outs + " : " + outTypes + ")";
  if (!scalars.empty())
    text += " scalars(" + scalars + ")";
  return text + " maps [" + maps + "] {" + spec.body + "  }\n  return\n}\n";
}

/// The upper half of an f32, rounded to nearest even.
struct Bf16 {
  uint16_t bits = 0;
  Bf16() = default;
  explicit Bf16(double value) {
    auto wide = std::bit_cast<uint32_t>(static_cast<float>(value));
    bits = (wide + 0x7fff + (wide >> 16 & 1)) >> 16;
  }
  explicit operator double() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

template <typename T> std::string bytesOf(const Elements& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  for (size_t i = 0; i < values.size(); ++i) {
    T value = static_cast<T>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  return bytes;
}

template <typename T> Elements elementsOf(const std::string& bytes) {
  Elements values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
  return values;
}

Elements randomElements(const OperandSpec& operand, unsigned seed) {
  std::mt19937 generator(seed);
  Elements values(elementCount(operand.shape));
  for (double& value : values)
    if (operand.element == "bf16")
      value = static_cast<double>(Bf16(std::uniform_real_distribution<double>(-2, 2)(generator)));
    else if (operand.element.starts_with("f"))
      value = static_cast<float>(std::uniform_real_distribution<double>(-2, 2)(generator));
    else
      value = operand.element == "i1" ? generator() % 2 : generator() % 9 + 1;
  return values;
}

} // namespace

std::string encode(const std::string& element, const Elements& values) {
  if (element == "f32")
    return bytesOf<float>(values);
  if (element == "bf16")
    return bytesOf<Bf16>(values);
  if (element == "f64")
    return bytesOf<double>(values);
  if (element == "i64")
    return bytesOf<int64_t>(values);
  if (element == "i32")
    return bytesOf<int32_t>(values);
  return bytesOf<int8_t>(values);
}

Elements decode(const std::string& element, const std::string& bytes) {
  if (element == "f32")
    return elementsOf<float>(bytes);
  if (element == "bf16")
    return elementsOf<Bf16>(bytes);
  if (element == "f64")
    return elementsOf<double>(bytes);
  if (element == "i64")
    return elementsOf<int64_t>(bytes);
  if (element == "i32")
    return elementsOf<int32_t>(bytes);
  return elementsOf<int8_t>(bytes);
}

KernelCase::KernelCase(const KernelSpec& spec, std::string_view arch) : spec_(spec) {
  Result<TargetInfo> target = resolveCpu(arch);
  if (!target.ok()) {
    ADD_FAILURE() << target.error().message();
    return;
  }
  Result<std::unique_ptr<KernelRunner>> runner = KernelRunner::compile(moduleText(spec), *target);
  if (runner.ok())
    runner_ = runner.take();
  else
    ADD_FAILURE() << runner.error().message() << "\n" << moduleText(spec);
  unsigned seed = 1;
  for (const OperandSpec& in : spec.ins)
    ins_.push_back(randomElements(in, seed++));
  for (const OperandSpec& out : spec.outs)
    outs_.push_back(randomElements(out, seed++));
  for (unsigned i = 0; i < spec.scalars; ++i)
    scalars_.push_back(i + 3);
}

void KernelCase::setIn(size_t in, const Elements& values) {
  ASSERT_EQ(ins_[in].size(), values.size());
  ins_[in] = values;
}

std::vector<std::string> KernelCase::run(int64_t step,
                                         std::vector<std::pair<size_t, size_t>> places) {
  std::vector<std::string> buffers;
  auto add = [&](const OperandSpec& spec, const Elements& values) {
    buffers.push_back(encode(spec.element, values) + std::string(guardBytes, guardByte));
  };
  for (size_t i = 0; i < ins_.size(); ++i)
    add(spec_.ins[i], ins_[i]);
  for (size_t i = 0; i < outs_.size(); ++i)
    add(spec_.outs[i], outs_[i]);
  std::vector<char*> operands;
  for (std::string& buffer : buffers)
    operands.push_back(buffer.data());
  for (auto [in, out] : places)
    operands[ins_.size() + out] = operands[in];
  runner_->run(0, operands, scalars_, step);
  for (auto [in, out] : places) {
    buffers[ins_.size() + out] = buffers[in];
    buffers[in] = encode(spec_.ins[in].element, ins_[in]) + std::string(guardBytes, guardByte);
  }
  std::vector<std::string> results;
  for (size_t i = 0; i < buffers.size(); ++i) {
    std::string& buffer = buffers[i];
    EXPECT_TRUE(buffer.ends_with(std::string(guardBytes, guardByte)))
        << "operand " << i << " was written beyond its end";
    buffer.resize(buffer.size() - guardBytes);
    if (i >= ins_.size())
      results.push_back(buffer);
    else
      EXPECT_EQ(buffer, encode(spec_.ins[i].element, ins_[i])) << "in " << i << " was written";
  }
  return results;
}

void KernelCase::check(double tolerance) {
  if (!runner_)
    return;
  std::string space;
  for (int64_t extent : spec_.space)
    space += std::to_string(extent) + " ";
  SCOPED_TRACE("space " + space);
  std::vector<std::string> results = run();
  auto fused = llvm::cast<kernel::FusedOp>(runner_->kernels()[0].op);
  std::vector<Elements> expected = evaluateFused(fused, ins_, outs_, scalars_);
  for (size_t i = 0; i < results.size(); ++i) {
    Elements found = decode(spec_.outs[i].element, results[i]);
    for (size_t j = 0; j < found.size(); ++j) {
      double want = expected[i][j];
      bool equal = std::abs(found[j] - want) <= tolerance * (1 + std::abs(want)) ||
                   found[j] == want || (std::isnan(want) && std::isnan(found[j]));
      ASSERT_TRUE(equal) << "out " << i << ", element " << j << ": " << found[j] << ", expected "
                         << want;
    }
  }
  for (int64_t step : {1, 3})
    EXPECT_EQ(run(step), results) << "in calls of " << step << " units";
}

void KernelCase::checkInPlace(size_t in, size_t out) {
  if (!runner_)
    return;
  std::vector<std::string> apart = run();
  for (int64_t step : {0, 1, 3})
    EXPECT_EQ(run(step, {{in, out}}), apart) << "in place, in calls of " << step << " units";
}

} // namespace titan::codegen::testing
