#include "runtime/data/TokenDataset.h"

#include "runtime/data/Digest.h"

#include <algorithm>
#include <cstring>

namespace titan {

namespace {

uint64_t load(const char* bytes, int64_t width) {
  uint64_t value = 0;
  for (int64_t i = 0; i < width; ++i)
    value |= uint64_t{static_cast<unsigned char>(bytes[i])} << 8 * i;
  return value;
}

/// Bytes of a token in a .bin file, which does not say itself: 4 when the vocabulary needs it, or
/// when every second 16-bit word of the file's start is zero, as it is for 32-bit tokens below
/// 65536; else 2.
int64_t tokenWidth(std::span<const char> bytes, int64_t classes) {
  constexpr size_t least = 32, most = 64 << 10;
  if (classes > 1 << 16)
    return 4;
  if (bytes.size() % 4 != 0 || bytes.size() < least)
    return 2;
  bool anyLow = false;
  for (size_t i = 0; i + 4 <= std::min(bytes.size(), most); i += 4) {
    if (load(bytes.data() + i + 2, 2) != 0)
      return 2;
    anyLow |= load(bytes.data() + i, 2) != 0;
  }
  return anyLow ? 4 : 2;
}

Status checkFields(const std::vector<FieldSpec>& fields) {
  const FieldSpec* input = nullptr;
  for (const FieldSpec& field : fields) {
    if (field.dtype != DType::I64 && field.dtype != DType::I32)
      return Error::badInput("field '{}' needs {}: token files hold integers", field.name,
                             name(field.dtype));
    if (elementCount(field.shape) != elementCount(fields[0].shape) || elementCount(field.shape) < 1)
      return Error::badInput("field '{}' {} and field '{}' {} must have the same "
                             "number of tokens",
                             fields[0].name, toString(fields[0].shape), field.name,
                             toString(field.shape));
    if (field.target)
      continue;
    if (input)
      return Error::badInput("token files give one input and its target; the model reads '{}' and "
                             "'{}': use .npz with an array each",
                             input->name, field.name);
    input = &field;
  }
  if (!input)
    return Error::badInput("token files give an input, the model reads none");
  return {};
}

} // namespace

int64_t TokenDataset::Stream::token(int64_t index) const {
  return static_cast<int64_t>(load(file->bytes().data() + index * width, width));
}

Result<std::unique_ptr<Dataset>> TokenDataset::open(std::span<const std::string> files,
                                                    std::vector<FieldSpec> fields) {
  if (Status status = checkFields(fields); !status.ok())
    return status.takeError().withContext(files[0]);
  int64_t classes = 0;
  for (const FieldSpec& field : fields)
    classes = std::max(classes, field.classes);
  const int64_t window = elementCount(fields[0].shape);
  std::unique_ptr<TokenDataset> dataset(new TokenDataset(std::move(fields), window));
  for (const std::string& file : files)
    TITAN_TRY(dataset->addFile(file, classes));
  return std::unique_ptr<Dataset>(std::move(dataset));
}

Status TokenDataset::addFile(const std::string& path, int64_t classes) {
  Stream stream{path, TITAN_TRY(MappedFile::open(path)), 1, size_};
  const std::span<const char> bytes = stream.file->bytes();
  if (path.ends_with(".bin"))
    stream.width = tokenWidth(bytes, classes);
  if (bytes.size() % static_cast<size_t>(stream.width) != 0)
    return Error::badInput("{}: {} bytes are not a whole number of uint{} tokens", path,
                           bytes.size(), 8 * stream.width);
  if (stream.tokens() <= window_)
    return Error::badInput("{}: {} tokens are too few: a sample of {} tokens and their targets "
                           "needs {}",
                           path, stream.tokens(), window_, window_ + 1);
  size_ += (stream.tokens() - 1) / window_;
  streams_.push_back(std::move(stream));
  return {};
}

Status TokenDataset::read(int64_t sample, size_t field, char* destination) const {
  const auto after = std::ranges::upper_bound(streams_, sample, {}, &Stream::first);
  const Stream& stream = *std::prev(after);
  const FieldSpec& spec = fields()[field];
  const int64_t start = (sample - stream.first) * window_ + (spec.target ? 1 : 0);
  const size_t bytes = static_cast<size_t>(byteSize(spec.dtype));
  for (int64_t i = 0; i < window_; ++i, destination += bytes) {
    const int64_t token = stream.token(start + i);
    if (spec.classes > 0 && token >= spec.classes)
      return Error::badInput("{}: token {} is {}, field '{}' takes [0, {})", stream.path, start + i,
                             token, spec.name, spec.classes);
    std::memcpy(destination, &token, bytes); // little-endian: the low bytes come first
  }
  return {};
}

uint64_t TokenDataset::digest() const {
  std::call_once(digestOnce_, [&] {
    DataDigest digest;
    for (const Stream& stream : streams_) {
      const int64_t tokens = stream.tokens();
      const DType dtype =
          stream.width == 4 ? DType::U32 : (stream.width == 2 ? DType::U16 : DType::U8);
      digest.add("tokens", dtype, std::span(&tokens, 1), stream.file->bytes());
    }
    digest_ = digest.value();
  });
  return digest_;
}

} // namespace titan
