#include "runtime/checkpoint/testing/FaultEnv.h"

namespace titan::checkpoint {

void FaultEnv::failAt(int64_t operation, int errorNumber, bool forGood) {
  history_.clear();
  failAt_ = operation;
  errorNumber_ = errorNumber;
  forGood_ = forGood;
  failed_.clear();
}

Status FaultEnv::enter(const char* verb, const std::string& path) {
  const int64_t operation = operations();
  history_.push_back(fmt::format("{} '{}'", verb, path));
  if (happen_)
    happen_(operation);
  if (failAt_ == never || operation < failAt_ || (operation > failAt_ && !forGood_))
    return {};
  if (failed_.empty())
    failed_ = history_.back();
  return fileError(verb, path, errorNumber_);
}

Status FaultEnv::perform(const char* verb, const std::string& path, const Operation& operation) {
  TITAN_TRY(enter(verb, path));
  return operation();
}

Status FaultEnv::append(WritableFile& file, const std::string& path, std::string_view bytes) {
  if (Status entered = enter("write", path); !entered.ok()) {
    (void)file.append(bytes.substr(0, bytes.size() / 2));
    return entered;
  }
  return file.append(bytes);
}

} // namespace titan::checkpoint
