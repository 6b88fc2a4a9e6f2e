// Samples of a training or evaluation set: arrays in .npy, .npz and .safetensors files, or windows
// of token files. A Dataset has no cursor; which sample a batch position reads is decided by
// Loader.h.
#pragma once

#include "runtime/data/MappedFile.h"
#include "runtime/program/DType.h"
#include "runtime/program/Program.h"
#include "runtime/program/Recipe.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace titan {

/// What the program reads under one input name: the dtype and shape of ONE sample (the binding's
/// shape without [microbatches, micro]).
struct FieldSpec {
  std::string name; ///< of the model's input or of the loss's target; recipe `data.fields` maps it
                    ///< to an array
  DType dtype = DType::F32;
  Shape shape;
  int64_t classes = 0;        ///< > 0: every value must be in [0, classes) or be `ignoreIndex`
  int64_t ignoreIndex = -100; ///< allowed beside [0, classes); recipe key loss.ignore_index
  bool target = false;        ///< the loss's target: in token files, the tokens one position later
  std::vector<ClassRun> runs = {}; ///< Binding::runs: `classes` of single elements
};

/// The classes of each element of a sample of `field`; empty where they are all the same.
std::vector<int64_t> classesByElement(const FieldSpec& field);

class Dataset {
public:
  virtual ~Dataset() = default;

  const std::vector<FieldSpec>& fields() const { return fields_; }
  /// Bytes of one sample of `field` in the program's dtype.
  int64_t sampleBytes(size_t field) const;
  /// Tokens that one sample counts for; 0 when the data is not tokens and throughput is in samples.
  virtual int64_t tokensPerSample() const { return 0; }
  /// Number of samples, at least 1.
  virtual int64_t size() const = 0;
  /// XXH3-64 over the names, dtypes, shapes and bytes of the arrays read. Of an array larger than
  /// 64 MiB, 1024 blocks of 64 KiB at even distances enter, the first and the last among them.
  virtual uint64_t digest() const = 0;
  /// Writes sample `sample` (in [0, size())) of field `field` to `destination`, sampleBytes(field)
  /// bytes. Safe from several threads; allocates nothing. Fails with BadInput on a value outside of
  /// FieldSpec::classes.
  virtual Status read(int64_t sample, size_t field, char* destination) const = 0;
  /// BadInput, with its name, when a file lost bytes since it was opened: what was read before the
  /// call may be zeros. Loaders ask once a batch.
  Status checkFiles() const;

protected:
  explicit Dataset(std::vector<FieldSpec> fields) : fields_(std::move(fields)) {}
  /// `read` takes bytes of the mapping of `file`.
  void keepFile(std::shared_ptr<const MappedFile> file) { files_.push_back(std::move(file)); }

private:
  std::vector<FieldSpec> fields_;
  std::vector<std::shared_ptr<const MappedFile>> files_;
};

/// Opens `files` (recipe data.train or data.eval) for `fields`.
///  - .bin (uint16, or uint32 when the vocabulary is larger than 65536 or every second 16-bit word
///    of the file's start is zero) and .txt (bytes) are token files: one stream per file, cut in
///    windows of the sample's element count L; a window with targets needs L + 1 tokens. Which
///    field reads what: TokenFields.h.
///  - .npy holds one array (its name: the file's stem), .npz and .safetensors hold named ones. The
///    first dim counts samples. Several files with the same array are concatenated in the order
///    given.
/// Conversions: uint8 -> f32 by (x * scale - mean) / std, for the target by the plain value;
/// integers and bools between each other with a range check; floats between each other. Everything
/// else is refused. Integers with a limited range are checked when the data is opened, if they take
/// up to 256 MiB, and again when they are read. All errors are BadInput with the file's name.
Result<std::unique_ptr<Dataset>> openDataset(std::span<const std::string> files,
                                             const DataRecipe& recipe,
                                             std::vector<FieldSpec> fields);

} // namespace titan
