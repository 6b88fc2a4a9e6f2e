// Samples that are rows of arrays.
#pragma once

#include "runtime/data/Array.h"
#include "runtime/data/Conversion.h"
#include "runtime/data/Dataset.h"

#include <mutex>

namespace titan {

class ArrayDataset : public Dataset {
public:
  static Result<std::unique_ptr<Dataset>>
  open(std::span<const std::string> files, const DataRecipe& recipe, std::vector<FieldSpec> fields);

  int64_t size() const override { return size_; }
  uint64_t digest() const override;
  Status read(int64_t sample, size_t field, char* destination) const override;

private:
  /// The rows that one file gives to a field.
  struct Segment {
    int64_t first = 0; ///< sample index of the array's first row
    int64_t rowBytes = 0;
    Array array;
    std::string file;
    Conversion conversion;
  };
  using Column = std::vector<Segment>; ///< in the order of the files

  explicit ArrayDataset(std::vector<FieldSpec> fields) : Dataset(std::move(fields)) {}

  /// `files` names them in errors.
  static Result<Column> openColumn(const FieldSpec& field, const DataRecipe& recipe,
                                   const std::string& files,
                                   std::span<const std::pair<std::string, Array>> arrays);
  /// Does an array lie in the mapping of `file`?
  bool reads(const MappedFile* file) const;
  /// Values that nothing is scaled by are a mistake.
  Status checkScaling(const DataRecipe& recipe, const std::string& files) const;
  Status checkLabels() const;

  std::vector<Column> columns_; ///< by field
  int64_t size_ = 0;
  mutable std::once_flag digestOnce_;
  mutable uint64_t digest_ = 0;
};

} // namespace titan
