#include "compiler/Codegen/kernel/testing/KernelSpec.h"

#include "runtime/program/DType.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

namespace titan::codegen::testing {
namespace {

std::string typeOf(const OperandSpec& operand) {
  std::string text = "memref<";
  for (int64_t extent : operand.shape)
    text += std::to_string(extent) + "x";
  return text + operand.element + ">";
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

} // namespace

std::string moduleText(const KernelSpec& spec) {
  std::string arguments, ins, inTypes, outs, outTypes, maps, space, scalars;
  auto append = [](std::string& list, const std::string& item) {
    list += (list.empty() ? "" : ", ") + item;
  };
  size_t count = 0;
  auto operand = [&](const OperandSpec& o, std::string& names, std::string& types) {
    std::string name = "%p" + std::to_string(count++);
    append(arguments,
           name + ": " + typeOf(o) + " {kernel.offset = " + std::to_string(o.offset) + " : i64}");
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

KernelData::KernelData(const KernelSpec& spec) : spec_(spec) {
  unsigned seed = 1;
  for (const OperandSpec& in : spec.ins)
    ins_.push_back(randomElements(in, seed++));
  for (const OperandSpec& out : spec.outs)
    outs_.push_back(randomElements(out, seed++));
  for (unsigned i = 0; i < spec.scalars; ++i)
    scalars_.push_back(i + 3);
}

void KernelData::setIn(size_t in, const Elements& values) {
  ASSERT_EQ(ins_[in].size(), values.size());
  ins_[in] = values;
}

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

bool isClose(double found, double want, double tolerance) {
  return std::abs(found - want) <= tolerance * (1 + std::abs(want)) || found == want ||
         (std::isnan(want) && std::isnan(found));
}

} // namespace titan::codegen::testing
