// Elements of an array into the dtype that the program reads.
#pragma once

#include "runtime/data/Dataset.h"

#include <optional>
#include <string>
#include <vector>

namespace titan {

/// The conversion of one field, decided when the data is opened.
class Conversion {
public:
  /// From arrays of dtype `from` to `field`. Allowed are: the same dtype; between floats; between
  /// integers and bools (each value is checked); bool to float; uint8 to float, by (x * scale -
  /// mean) / std unless it is the target. Channels of mean and std are the first dimension of a
  /// sample, or the last one where the first has another extent.
  static Result<Conversion> create(DType from, const FieldSpec& field, const DataRecipe& recipe);
  /// The keys that `recipe` sets for this, "data.mean, data.std"; empty without any.
  static std::string scalingKeys(const DataRecipe& recipe);

  /// Converts one sample, elementCount(field.shape) elements; addresses need no alignment. Returns
  /// the index of the first element outside of its classes or of the dtype's range, or -1.
  int64_t apply(const char* source, char* destination) const;
  /// Integer `index` of a sample, for errors.
  int64_t valueAt(const char* source, int64_t index) const;
  /// What its value must be below, beside Range::other; 0: any.
  int64_t classesAt(int64_t index) const;
  /// Is it (x * scale - mean) / std, of uint8?
  bool scales() const { return !table_.empty(); }
  /// Can a value be out of range, so that reading it may fail?
  bool checks() const { return checks_; }

private:
  struct Range {
    int64_t low, high, other; ///< [low, high] or `other`
  };
  using Function = int64_t (*)(const char* source, char* destination, int64_t count, Range range);

  /// The first element of a sample outside of its own classes, or -1.
  int64_t outsideOfOwn(const char* source) const;

  DType from_ = DType::F32;
  int64_t count_ = 1;
  Function function_ = nullptr; ///< null: uint8 by table
  Range range_ = {};
  int64_t classes_ = 0;
  std::vector<int64_t> classesByElement_; ///< empty: classes_ of all
  bool checks_ = false;
  /// uint8 to f32: 256 values a channel, of which each has `run_` elements at a time.
  std::vector<float> table_;
  int64_t channels_ = 1, run_ = 1;
};

} // namespace titan
