#include "runtime/data/ArrayDataset.h"

#include "runtime/data/Digest.h"

#include <algorithm>

namespace titan {

namespace {

/// Labels up to this size are checked when the data is opened; larger fields as they are read.
constexpr int64_t maxCheckedBytes = 256 << 20;

using NamedFileArray = std::pair<std::string, Array>; ///< file, array

/// The arrays of all `files`, in order; `mapped` receives the files.
Result<std::vector<NamedFileArray>>
readAll(std::span<const std::string> files,
        std::vector<std::shared_ptr<const MappedFile>>& mapped) {
  std::vector<NamedFileArray> all;
  for (const std::string& file : files) {
    mapped.push_back(TITAN_TRY(MappedFile::open(file)));
    for (Array& array : TITAN_TRY(readArrays(mapped.back())))
      all.emplace_back(file, std::move(array));
  }
  return all;
}

/// "images U8 [60000, 28, 28], labels I64 [60000]"
std::string list(std::span<const NamedFileArray> arrays) {
  std::string text;
  for (const auto& [file, array] : arrays)
    text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", array.name, name(array.dtype),
                        toString(array.shape));
  return text.empty() ? "no arrays" : text;
}

/// What the error about `value`, outside of [0, classes), says of labels that do not count.
std::string aboutIgnored(const FieldSpec& spec, int64_t classes, int64_t value) {
  if (!spec.target)
    return value < 0 ? "; only labels of loss.target may be loss.ignore_index" : "";
  const bool isOutside = spec.ignoreIndex < 0 || spec.ignoreIndex >= classes;
  return isOutside ? fmt::format(" and not ignore_index {}", spec.ignoreIndex) : "";
}

Status checkShape(const FieldSpec& field, const std::string& file, const Array& array) {
  if (!array.shape.empty() && std::ranges::equal(std::span(array.shape).subspan(1), field.shape))
    return {};
  std::string expected = "[samples";
  for (int64_t extent : field.shape)
    expected += fmt::format(", {}", extent);
  return Error::badInput("{}: array '{}' has shape {}, field '{}' needs {}]", file, array.name,
                         toString(array.shape), field.name, expected);
}

} // namespace

Result<ArrayDataset::Column> ArrayDataset::openColumn(const FieldSpec& field,
                                                      const DataRecipe& recipe,
                                                      const std::string& files,
                                                      std::span<const NamedFileArray> arrays) {
  const auto mapped = recipe.fields.find(field.name);
  const std::string& wanted = mapped == recipe.fields.end() ? field.name : mapped->second;
  Column column;
  int64_t first = 0;
  for (const auto& [file, array] : arrays) {
    if (array.name != wanted)
      continue;
    TITAN_TRY(checkShape(field, file, array));
    Result<Conversion> conversion = Conversion::create(array.dtype, field, recipe);
    if (!conversion.ok())
      return conversion.takeError().withContext(fmt::format("{}: array '{}'", file, array.name));
    const int64_t rowBytes = elementCount(field.shape) * byteSize(array.dtype);
    if (array.shape[0] > 0)
      column.push_back({first, rowBytes, array, file, conversion.take()});
    first += array.shape[0];
  }
  if (!column.empty())
    return column;
  if (std::ranges::none_of(arrays, [&](const auto& entry) { return entry.second.name == wanted; }))
    return Error::badInput("{}: no array '{}' for field '{}'; there are: {}; map it with "
                           "data.fields = {{ {} = \"...\" }}",
                           files, wanted, field.name, list(arrays), field.name);
  return Error::badInput("{}: array '{}' for field '{}' holds 0 samples", files, wanted,
                         field.name);
}

Result<std::unique_ptr<Dataset>> ArrayDataset::open(std::span<const std::string> files,
                                                    const DataRecipe& recipe,
                                                    std::vector<FieldSpec> fields) {
  if (fields.empty())
    return Error::badInput("the program reads no data");
  std::vector<std::shared_ptr<const MappedFile>> mapped;
  const std::vector<NamedFileArray> arrays = TITAN_TRY(readAll(files, mapped));
  std::unique_ptr<ArrayDataset> dataset(new ArrayDataset(std::move(fields)));
  const std::string names = fmt::format("{}", fmt::join(files, ", "));
  for (const FieldSpec& field : dataset->fields()) {
    Column column = TITAN_TRY(openColumn(field, recipe, names, arrays));
    const int64_t samples = column.back().first + column.back().array.shape[0];
    if (!dataset->columns_.empty() && samples != dataset->size_)
      return Error::badInput("{}: field '{}' has {} samples, field '{}' has {}", names,
                             dataset->fields()[0].name, dataset->size_, field.name, samples);
    dataset->size_ = samples;
    dataset->columns_.push_back(std::move(column));
  }
  TITAN_TRY(dataset->checkScaling(recipe, names));
  // What was inflated does not need its file any more.
  for (std::shared_ptr<const MappedFile>& file : mapped)
    if (dataset->reads(file.get()))
      dataset->keepFile(std::move(file));
  TITAN_TRY(dataset->checkLabels());
  return std::unique_ptr<Dataset>(std::move(dataset));
}

bool ArrayDataset::reads(const MappedFile* file) const {
  return std::ranges::any_of(columns_, [&](const Column& column) {
    return std::ranges::any_of(
        column, [&](const Segment& segment) { return segment.array.storage.get() == file; });
  });
}

Status ArrayDataset::checkScaling(const DataRecipe& recipe, const std::string& files) const {
  const std::string keys = Conversion::scalingKeys(recipe);
  std::string read;
  for (size_t field = 0; field < columns_.size(); ++field) {
    for (const Segment& segment : columns_[field])
      if (segment.conversion.scales())
        return {};
    read += fmt::format("{}{} {}", read.empty() ? "" : ", ", fields()[field].name,
                        name(columns_[field][0].array.dtype));
  }
  if (keys.empty())
    return {};
  return Error::badInput("{}: no array is scaled by {}, which is for inputs in U8; there are: {}: "
                         "scale them in the file, or remove {} from the recipe",
                         files, keys, read, keys);
}

Status ArrayDataset::checkLabels() const {
  for (size_t field = 0; field < columns_.size(); ++field) {
    const Column& column = columns_[field];
    const bool checks = std::ranges::any_of(
        column, [](const Segment& segment) { return segment.conversion.checks(); });
    if (!checks || size_ * column[0].rowBytes > maxCheckedBytes)
      continue;
    std::vector<char> scratch(static_cast<size_t>(sampleBytes(field)));
    for (int64_t sample = 0; sample < size_; ++sample)
      TITAN_TRY(read(sample, field, scratch.data()));
  }
  return {};
}

Status ArrayDataset::read(int64_t sample, size_t field, char* destination) const {
  const Column& column = columns_[field];
  const auto after = std::ranges::upper_bound(column, sample, {}, &Segment::first);
  const Segment& segment = *std::prev(after);
  const char* row = segment.array.bytes.data() + (sample - segment.first) * segment.rowBytes;
  const int64_t bad = segment.conversion.apply(row, destination);
  if (bad < 0)
    return {};
  const FieldSpec& spec = fields()[field];
  const int64_t value = segment.conversion.valueAt(row, bad);
  if (const int64_t classes = segment.conversion.classesAt(bad); classes > 0) {
    const std::string element = spec.runs.empty() ? "" : fmt::format(", element {},", bad);
    return Error::badInput("{}: array '{}', sample {}: value {}{} is not in [0, {}){}",
                           segment.file, segment.array.name, sample - segment.first, value, element,
                           classes, aboutIgnored(spec, classes, value));
  }
  return Error::badInput("{}: array '{}', sample {}: value {} does not fit {}", segment.file,
                         segment.array.name, sample - segment.first, value, name(spec.dtype));
}

uint64_t ArrayDataset::digest() const {
  std::call_once(digestOnce_, [&] {
    DataDigest digest;
    for (const Column& column : columns_)
      for (const Segment& segment : column)
        digest.add(segment.array.name, segment.array.dtype, segment.array.shape,
                   segment.array.bytes);
    digest_ = digest.value();
  });
  return digest_;
}

} // namespace titan
