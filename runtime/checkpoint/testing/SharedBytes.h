// The bytes of a file, which copies share until one of them is written to.
#pragma once

#include "runtime/checkpoint/Digest.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace titan::checkpoint {

class SharedBytes {
public:
  SharedBytes() : SharedBytes(std::string()) {}
  SharedBytes(std::string bytes) : content_(std::make_shared<Content>(std::move(bytes))) {}

  const std::string& operator*() const { return content_->bytes; }
  const std::string* operator->() const { return &content_->bytes; }
  bool operator==(const SharedBytes& other) const {
    return content_ == other.content_ || **this == *other;
  }

  /// To be written to: no longer those of a copy.
  std::string& own() {
    if (content_.use_count() > 1)
      content_ = std::make_shared<Content>(content_->bytes);
    content_->digest.reset();
    return content_->bytes;
  }

  /// Taken once for all copies.
  const std::string& digest() const {
    if (!content_->digest)
      content_->digest = digestOf(content_->bytes);
    return *content_->digest;
  }

private:
  struct Content {
    explicit Content(std::string bytes) : bytes(std::move(bytes)) {}
    std::string bytes;
    std::optional<std::string> digest;
  };
  std::shared_ptr<Content> content_;
};

} // namespace titan::checkpoint
