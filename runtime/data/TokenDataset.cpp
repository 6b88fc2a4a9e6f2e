#include "runtime/data/TokenDataset.h"

#include "runtime/data/Conversion.h"
#include "runtime/data/Digest.h"

#include <algorithm>
#include <cstring>

namespace titan {

namespace {

/// Tokens of files up to this size are checked when they are opened; all are as they are read.
constexpr int64_t maxCheckedBytes = 256 << 20;

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

Status checkLengths(const std::vector<FieldSpec>& fields) {
  const FieldSpec& first = fields[0];
  for (const FieldSpec& field : fields)
    if (elementCount(field.shape) != elementCount(first.shape) || elementCount(field.shape) < 1)
      return Error::badInput("field '{}' {} and field '{}' {} must have the same "
                             "number of tokens",
                             first.name, toString(first.shape), field.name, toString(field.shape));
  return {};
}

} // namespace

int64_t TokenDataset::Stream::token(int64_t index) const {
  return static_cast<int64_t>(load(bytes.data() + index * width, width));
}

TokenDataset::TokenDataset(std::vector<FieldSpec> fields, std::vector<TokenSource> sources)
    : Dataset(std::move(fields)), sources_(std::move(sources)),
      window_(elementCount(this->fields()[0].shape)),
      ahead_(std::ranges::find(sources_, TokenSource::Next) != sources_.end()) {}

Result<std::unique_ptr<Dataset>> TokenDataset::open(std::span<const std::string> files,
                                                    const DataRecipe& recipe,
                                                    std::vector<FieldSpec> fields) {
  if (Status status = checkLengths(fields); !status.ok())
    return status.takeError().withContext(files[0]);
  if (const std::string keys = Conversion::scalingKeys(recipe); !keys.empty())
    return Error::badInput("{}: tokens are not scaled by {}: remove it from the recipe", files[0],
                           keys);
  Result<std::vector<TokenSource>> sources = tokenSources(fields, recipe.fields);
  if (!sources.ok())
    return sources.takeError().withContext(files[0]);
  std::unique_ptr<TokenDataset> dataset(new TokenDataset(std::move(fields), sources.take()));
  for (const std::string& file : files)
    TITAN_TRY(dataset->addFile(file));
  return std::unique_ptr<Dataset>(std::move(dataset));
}

const FieldSpec* TokenDataset::narrowest() const {
  const FieldSpec* least = nullptr;
  for (size_t i = 0; i < sources_.size(); ++i) {
    const FieldSpec& field = fields()[i];
    const bool reads = sources_[i] == TokenSource::Tokens || sources_[i] == TokenSource::Next;
    if (reads && field.classes > 0 && (!least || field.classes < least->classes))
      least = &field;
  }
  return least;
}

Status TokenDataset::addFile(const std::string& path) {
  const FieldSpec* vocabulary = narrowest();
  const int64_t classes = vocabulary ? vocabulary->classes : 0;
  auto file = TITAN_TRY(MappedFile::open(path));
  const std::span<const char> bytes = file->bytes();
  keepFile(std::move(file));
  Stream stream{path, bytes, 1, size_};
  if (path.ends_with(".bin"))
    stream.width = tokenWidth(bytes, classes);
  if (bytes.size() % static_cast<size_t>(stream.width) != 0)
    return Error::badInput("{}: {} bytes are not a whole number of uint{} tokens", path,
                           bytes.size(), 8 * stream.width);
  if (stream.tokens() < window_ + ahead_)
    return Error::badInput("{}: {} tokens are too few: a sample of {} tokens{} needs {}", path,
                           stream.tokens(), window_, ahead_ ? " and their targets" : "",
                           window_ + ahead_);
  // One token that the model does not know should not end a run after an epoch.
  if (classes > 0 && classes < int64_t{1} << 8 * stream.width &&
      static_cast<int64_t>(bytes.size()) <= maxCheckedBytes)
    for (int64_t i = 0; i < stream.tokens(); ++i)
      if (stream.token(i) >= classes)
        return outOfRange(stream, i, *vocabulary);
  size_ += (stream.tokens() - ahead_) / window_;
  streams_.push_back(std::move(stream));
  return {};
}

Error TokenDataset::outOfRange(const Stream& stream, int64_t index, const FieldSpec& field) {
  return Error::badInput("{}: token {} is {}, field '{}' takes [0, {})", stream.path, index,
                         stream.token(index), field.name, field.classes);
}

Status TokenDataset::readTokens(const Stream& stream, const FieldSpec& spec, int64_t start,
                                char* destination) const {
  const auto bytes = static_cast<size_t>(byteSize(spec.dtype));
  for (int64_t i = 0; i < window_; ++i, destination += bytes) {
    const int64_t token = stream.token(start + i);
    if (spec.classes > 0 && token >= spec.classes)
      return outOfRange(stream, start + i, spec);
    std::memcpy(destination, &token, bytes); // little-endian: the low bytes come first
  }
  return {};
}

Status TokenDataset::read(int64_t sample, size_t field, char* destination) const {
  const auto after = std::ranges::upper_bound(streams_, sample, {}, &Stream::first);
  const Stream& stream = *std::prev(after);
  const FieldSpec& spec = fields()[field];
  const int64_t start = (sample - stream.first) * window_;
  switch (sources_[field]) {
  case TokenSource::Tokens:
    return readTokens(stream, spec, start, destination);
  case TokenSource::Next:
    return readTokens(stream, spec, start + 1, destination);
  case TokenSource::Positions:
    for (int64_t i = 0; i < window_; ++i)
      storeToken(spec.dtype, i, destination + i * byteSize(spec.dtype));
    break;
  case TokenSource::Ones:
  case TokenSource::Zeros:
    for (int64_t i = 0; i < window_; ++i)
      storeToken(spec.dtype, sources_[field] == TokenSource::Ones,
                 destination + i * byteSize(spec.dtype));
    break;
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
      digest.add("tokens", dtype, std::span(&tokens, 1), stream.bytes);
    }
    digest_ = digest.value();
  });
  return digest_;
}

} // namespace titan
