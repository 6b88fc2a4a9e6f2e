#include "runtime/checkpoint/Pickle.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace titan::checkpoint {
namespace {

constexpr std::string_view piecesSuffix = ".distcp";
constexpr std::array<std::string_view, 6> suffixes = {".pt",   ".pth", ".bin",
                                                      ".ckpt", ".pkl", piecesSuffix};

bool hasSuffix(std::string_view path) {
  return std::ranges::any_of(suffixes,
                             [&](std::string_view suffix) { return path.ends_with(suffix); });
}

/// torch.save writes a ZIP archive whose first file is data.pkl, or in old versions a bare pickle.
Result<bool> hasFirstBytes(const std::string& path, Env& env) {
  constexpr int64_t most = 256, least = 8;
  const auto file = TITAN_TRY(env.openFile(path));
  if (file->size() < least)
    return false;
  std::string bytes(static_cast<size_t>(std::min(most, file->size())), '\0');
  TITAN_TRY(file->read(0, bytes.data(), static_cast<int64_t>(bytes.size())));
  // A safetensors file begins with the length of its header, which four bytes hold.
  if (bytes.substr(4, 4) == std::string(4, '\0'))
    return false;
  const bool isArchive =
      bytes.starts_with("PK\x03\x04") && bytes.find("data.pkl") != std::string::npos;
  const bool isBare = bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
  return isArchive || isBare;
}

/// A word of Python.
std::string inPython(std::string_view text) {
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\' || c == '"')
      word += '\\';
    word += c;
  }
  return word + "'";
}

/// One line for a shell; `load` is an expression that yields tensors by name.
std::string conversion(std::string_view first, const std::string& load) {
  return fmt::format("python3 -c \"import torch, safetensors.torch as s; {}s.save_file({{k: "
                     "v.contiguous().clone() "
                     "for k, v in {}.items()}}, 'model.safetensors')\"",
                     first, load);
}

std::string loadOf(const std::string& path) {
  return fmt::format("torch.load({}, map_location='cpu', weights_only=True)", inPython(path));
}

Error refusal(const std::string& path) {
  return Error::badInput("'{}' is a pickle, which may run code when it is read: convert it with {}",
                         path, conversion("", loadOf(path)));
}

Error refusalOfPieces(const std::string& directory) {
  const std::string whole = "model.pt";
  return Error::badInput(
      "'{}' holds a distributed checkpoint of pickles, which may run code when they are read: "
      "convert it with {}",
      directory,
      conversion(fmt::format("import torch.distributed.checkpoint.format_utils as f; "
                             "f.dcp_to_torch_save({}, {}); ",
                             inPython(directory), inPython(whole)),
                 loadOf(whole)));
}

} // namespace

Status refusePickle(const std::string& path, Env& env) {
  if (path.ends_with(piecesSuffix))
    return refusalOfPieces(parentPath(path));
  if (hasSuffix(path) || TITAN_TRY(hasFirstBytes(path, env)))
    return refusal(path);
  return {};
}

Status refusePickles(const std::string& path, Env& env) {
  for (const DirectoryEntry& entry : TITAN_TRY(env.readDirectory(path)))
    if (entry.name.ends_with(piecesSuffix))
      return refusalOfPieces(path);
    else if (entry.kind == FileKind::File && hasSuffix(entry.name))
      return refusal(joinPath(path, entry.name));
  return {};
}

} // namespace titan::checkpoint
