#include "compiler/Codegen/kernel/testing/ScatterCase.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace titan::codegen::testing {
namespace {

bool isInteger(const std::string& element) { return element[0] != 'f' && element[0] != 'b'; }

Elements drawValues(std::mt19937& generator, int64_t count, bool isInteger) {
  Elements values(count);
  for (double& value : values)
    value = static_cast<double>(below(generator, 33) - 16) / (isInteger ? 1 : 2);
  return values;
}

double combine(const std::string& kind, double x, double update) {
  if (kind == "add")
    return x + update;
  if (kind == "mul")
    return x * update;
  if (kind == "max")
    return std::isnan(x) || x > update ? x : update;
  if (kind == "min")
    return std::isnan(x) || x < update ? x : update;
  return update;
}

} // namespace

int64_t below(std::mt19937& generator, int64_t count) {
  return static_cast<int64_t>(generator() % static_cast<uint64_t>(count));
}

bool isSame(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

std::string moduleText(const ScatterCase& c) {
  const std::string index = fmt::format("memref<{}x{}>", c.places(), c.index),
                    from = fmt::format("memref<{}x{}>", c.places() * c.width, c.element),
                    to = fmt::format("memref<{}x{}>", c.outer * c.entries * c.inner * c.width,
                                     c.element);
  return fmt::format("func.func @f(%i: {0}, %u: {1}, %r: {2}) {{\n"
                     "kernel.call #kernel.scatter<kind = {3}, outer = {4}, entries = {5}, inner = "
                     "{6}, rows = {7}, width = {8}, columns = {9}> ins(%i, %u : {0}, {1}) outs(%r "
                     ": {2})\nreturn\n}}\n",
                     index, from, to, c.kind, c.outer, c.entries, c.inner, c.rows, c.width,
                     c.columns);
}

ScatterData drawScatter(const ScatterCase& c, std::mt19937& generator) {
  const int64_t updates = c.places() * c.width, elements = c.outer * c.entries * c.inner * c.width;
  Elements places(c.places());
  for (double& place : places)
    place = static_cast<double>(below(generator, c.entries + 4) - (c.index == "ui8" ? 0 : 2));
  Elements changes = drawValues(generator, updates, isInteger(c.element)),
           start = drawValues(generator, elements, isInteger(c.element)), expected = start;
  if (!isInteger(c.element))
    changes[below(generator, updates)] = std::numeric_limits<double>::quiet_NaN();
  for (int64_t o = 0, place = 0; o < c.outer; ++o)
    for (int64_t row = 0; row < c.rows; ++row)
      for (int64_t i = 0; i < c.inner; ++i, ++place)
        for (int64_t column = 0; column < c.width; ++column) {
          auto entry = std::clamp<int64_t>(static_cast<int64_t>(places[place]), 0, c.entries - 1);
          double& x = expected[((o * c.entries + entry) * c.inner + i) * c.width + column];
          x = combine(c.kind, x, changes[place * c.width + column]);
          if (c.element == "f32")
            x = static_cast<float>(x);
        }
  return {{encode(c.index, places), encode(c.element, changes), encode(c.element, start)},
          std::move(expected)};
}

std::string moduleText(const SortCase& c) {
  const std::string x = fmt::format("memref<{}x{}x{}>", c.rows, c.length, c.element),
                    values = fmt::format("memref<{}x{}x{}>", c.rows, c.count, c.element),
                    indices = fmt::format("memref<{}x{}xi64>", c.rows, c.count);
  return fmt::format("func.func @f(%x: {0}, %v: {1}, %i: {2}) {{\n"
                     "kernel.call #kernel.top_k<rows = {3}, length = {4}, count = {5}, smallest = "
                     "{6}> ins(%x : {0}) outs(%v, %i : {1}, {2})\nreturn\n}}\n",
                     x, values, indices, c.rows, c.length, c.count, c.smallest);
}

SortData drawSort(const SortCase& c, std::mt19937& generator) {
  Elements elements = drawValues(generator, c.rows * c.length, isInteger(c.element));
  if (!isInteger(c.element))
    for (double special : std::array<double, 7>{NAN, -NAN, INFINITY, -INFINITY, -0.0, 0, NAN})
      elements[below(generator, c.rows * c.length)] = special;
  SortData data;
  for (int64_t row = 0; row < c.rows; ++row) {
    const double* from = &elements[row * c.length];
    auto isLess = [&](int64_t a, int64_t b) {
      return std::isnan(from[b]) ? !std::isnan(from[a]) : from[a] < from[b];
    };
    std::vector<int64_t> order(c.length);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, [&](int64_t a, int64_t b) {
      const auto [low, high] = c.smallest ? std::pair(a, b) : std::pair(b, a);
      return isLess(low, high) || (a < b && !isLess(high, low));
    });
    for (int64_t i = 0; i < c.count; ++i) {
      data.indices.push_back(static_cast<double>(order[i]));
      data.values.push_back(from[order[i]]);
    }
  }
  data.operands = {encode(c.element, elements), encode(c.element, Elements(c.rows * c.count, 1)),
                   encode("i64", Elements(c.rows * c.count, -1))};
  return data;
}

} // namespace titan::codegen::testing
