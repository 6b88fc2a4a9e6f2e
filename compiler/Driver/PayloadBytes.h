// The bytes of a job's payload, from constants and weight files: read in pieces, never held.
#pragma once

#include "compiler/Codegen/Codegen.h"
#include "compiler/Link/DataObject.h"
#include "runtime/program/File.h"

#include <map>

namespace titan {

class PayloadBytes {
public:
  /// Opens the files of `parts`. BadInput: a file is missing or too short. `parts` must outlive the
  /// result.
  static Result<PayloadBytes> open(const std::vector<PayloadPart>& parts);

  /// Hands all bytes to `sink`, in order, with zeros between the parts. BadInput: a file changed
  /// since the model was imported.
  Status write(const link::ByteSink& sink) const;

private:
  explicit PayloadBytes(const std::vector<PayloadPart>& parts) : parts_(&parts) {}
  Status openFile(const PayloadPart& part);
  Status copy(const PayloadPart& part, const link::ByteSink& sink) const;

  const std::vector<PayloadPart>* parts_;
  std::map<std::string, Descriptor> files_; ///< by path
};

} // namespace titan
