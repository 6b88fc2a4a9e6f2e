// Samples that are consecutive windows of token files.
#pragma once

#include "runtime/data/TokenFields.h"

#include <mutex>

namespace titan {

class TokenDataset : public Dataset {
public:
  static Result<std::unique_ptr<Dataset>>
  open(std::span<const std::string> files, const DataRecipe& recipe, std::vector<FieldSpec> fields);

  int64_t size() const override { return size_; }
  int64_t tokensPerSample() const override { return window_; }
  uint64_t digest() const override;
  Status read(int64_t sample, size_t field, char* destination) const override;

private:
  /// One file; its windows are samples [first, first + windows).
  struct Stream {
    std::string path;
    std::span<const char> bytes;
    int64_t width = 1; ///< bytes of a token
    int64_t first = 0;
    int64_t token(int64_t index) const;
    int64_t tokens() const { return static_cast<int64_t>(bytes.size()) / width; }
  };

  TokenDataset(std::vector<FieldSpec> fields, std::vector<TokenSource> sources);
  /// The field that takes the fewest tokens; null when no field says how many it takes.
  const FieldSpec* narrowest() const;
  Status addFile(const std::string& path);
  static Error outOfRange(const Stream& stream, int64_t index, const FieldSpec& field);
  Status readTokens(const Stream& stream, const FieldSpec& spec, int64_t start,
                    char* destination) const;

  std::vector<Stream> streams_;
  std::vector<TokenSource> sources_; ///< by field
  int64_t window_;                   ///< tokens of a sample
  int64_t ahead_;                    ///< 1 if a window's last target lies behind it, else 0
  int64_t size_ = 0;
  mutable std::once_flag digestOnce_;
  mutable uint64_t digest_ = 0;
};

} // namespace titan
