// The bytes of a job's payload, gathered from constants and weight files without copying them.
#pragma once

#include "compiler/Codegen/Codegen.h"

#include "llvm/Support/MemoryBuffer.h"

#include <map>
#include <memory>

namespace titan {

class PayloadBytes {
public:
  /// Maps the files of `parts` and checks their digests. BadInput: a file is missing, too short, or
  /// changed since the model was imported. `parts` must outlive the result.
  static Result<PayloadBytes> open(const std::vector<PayloadPart>& parts);

  /// Pieces that lie one after another, the gaps between parts included.
  const std::vector<std::string_view>& pieces() const { return pieces_; }

private:
  Result<std::string_view> read(const PayloadPart& part);

  std::map<std::string, std::unique_ptr<llvm::MemoryBuffer>> files_;
  std::vector<std::string_view> pieces_;
};

} // namespace titan
