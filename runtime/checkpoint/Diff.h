// What does not fit between a program's state and what a file holds, as text for people.
#pragma once

#include "runtime/checkpoint/Manifest.h"

namespace titan::checkpoint {

/// The candidate with the smallest edit distance, if that is small enough to be a likely slip; else
/// empty.
std::string nearestName(std::string_view name, const std::vector<std::string>& candidates);

class Diff {
public:
  struct Tensor {
    std::string name;
    DType dtype = DType::F32;
    Shape shape;
  };

  void missing(const Tensor& wanted) { missing_.push_back(wanted); }
  void unexpected(const Tensor& found) { unexpected_.push_back(found); }
  /// `hint`: what would make it fit, or nothing.
  void mismatch(const Tensor& wanted, const Tensor& found, std::string_view hint = {});

  bool empty() const { return missing_.empty() && unexpected_.empty() && mismatches_.empty(); }
  /// A summary line and one line per difference, at most 20 of each sort:
  ///
  ///   <subject> does not fit this program: 1 missing, 1 unexpected, 1 of another shape
  ///     - fc1.weight F32 [128, 784] is missing: did you mean 'fc1.wieght'?
  ///     + fc1.wieght F32 [128, 784] is unexpected
  ///     ! fc2.bias is F32 [11], the program wants F32 [10]
  Error error(std::string_view subject, std::string_view advice) const;

private:
  std::vector<Tensor> missing_, unexpected_;
  std::vector<std::string> mismatches_;
  int shapes_ = 0, dtypes_ = 0;
};

} // namespace titan::checkpoint
