// A directory for one test, removed with all that is in it.
#pragma once

#include <filesystem>
#include <string>

#include <stdlib.h>

namespace titan::checkpoint {

class TemporaryDirectory {
public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "titan-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string path(const std::string& name = "") const {
    return name.empty() ? path_ : path_ + "/" + name;
  }

private:
  std::string path_;
};

} // namespace titan::checkpoint
