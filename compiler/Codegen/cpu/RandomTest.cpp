// kernel.random_half against runtime/program/Random.h, for runs of elements, single ones and
// strides.
#include "compiler/Codegen/cpu/testing/KernelCase.h"

#include <gtest/gtest.h>

namespace titan::codegen::testing {
namespace {

KernelSpec halves(int64_t m, int64_t n, const std::string& element) {
  return {
      .space = {m, n},
      .ins = {{"i64", "(r, c) -> ()", {}}, {"i64", "(r, c) -> ()", {}}},
      .outs = {{"i32", "(r, c) -> (r, c)", {m, n}}},
      .scalars = 1,
      .kernelClass = "flat",
      .body =
          "\n^bb0(%seed: i64, %step: i64, %microbatch: index):\n"
          "  %r = kernel.index 0\n  %c = kernel.index 1\n" +
          element +
          "  %h = kernel.random_half stream 81985529216486895 seed %seed step %step element %e\n"
          "  kernel.yield %h : i32\n"};
}

TEST(RandomHalf, RowsOfAMicrobatch) {
  for (auto [m, n] :
       {std::pair<int64_t, int64_t>{4, 64}, {3, 8}, {5, 10}, {2, 100}, {3, 1}, {1, 256}}) {
    std::string size = std::to_string(n), rows = std::to_string(m);
    KernelCase test(halves(m, n,
                           "  %rows = arith.constant " + rows +
                               " : index\n"
                               "  %n = arith.constant " +
                               size +
                               " : index\n"
                               "  %0 = arith.muli %microbatch, %rows : index\n"
                               "  %1 = arith.addi %r, %0 : index\n"
                               "  %2 = arith.muli %1, %n : index\n"
                               "  %e = arith.addi %2, %c : index\n"));
    test.setIn(0, {1234567891011.0});
    test.check(0);
  }
}

/// With a base that is known to begin a block, and with one that is not.
TEST(RandomHalf, FromABaseOn) {
  for (int64_t multiple : {8, 1}) {
    std::string factor = std::to_string(multiple);
    KernelSpec spec = halves(3, 64,
                             "  %n = arith.constant 64 : index\n"
                             "  %m = arith.constant " +
                                 factor +
                                 " : index\n"
                                 "  %base = arith.muli %microbatch, %m : index\n"
                                 "  %0 = arith.muli %r, %n : index\n"
                                 "  %e = arith.addi %0, %c : index\n");
    size_t end = spec.body.find("element %e") + std::string("element %e").size();
    spec.body.insert(end, " base %base {multiple = " + factor + " : i64}");
    KernelCase test(spec);
    test.setIn(0, {1234567891011.0});
    test.check(0);
  }
}

TEST(RandomHalf, ElementsApart) {
  KernelCase test(halves(5, 40,
                         "  %n = arith.constant 3 : index\n"
                         "  %1 = arith.muli %c, %n : index\n"
                         "  %e = arith.addi %1, %r : index\n"));
  test.check(0);
}

} // namespace
} // namespace titan::codegen::testing
