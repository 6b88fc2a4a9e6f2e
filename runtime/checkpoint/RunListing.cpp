#include "runtime/checkpoint/RunListing.h"

#include "runtime/checkpoint/TensorFile.h"

#include <algorithm>
#include <charconv>
#include <tuple>

namespace titan::checkpoint {
namespace {

constexpr std::string_view savePrefix = "saving step ", saveMiddle = " of ", saveEnd = " bytes";
constexpr std::string_view asidePrefix = "aside-";
constexpr int64_t maxLockBytes = 4096;

/// A number at the start of `text`, which is taken off.
std::optional<int64_t> takeNumber(std::string_view& text) {
  int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0)
    return std::nullopt;
  text.remove_prefix(static_cast<size_t>(rest - text.data()));
  return number;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix))
    return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<LockText::Save> parseSave(std::string_view line) {
  if (!take(line, savePrefix))
    return std::nullopt;
  const auto step = takeNumber(line);
  if (!step || !take(line, saveMiddle))
    return std::nullopt;
  const auto bytes = takeNumber(line);
  if (!bytes || line != saveEnd)
    return std::nullopt;
  return LockText::Save{*step, *bytes};
}

/// "<prefix>step-00000100-<unique>" is of step 100.
std::optional<int64_t> stepOf(std::string_view name) {
  return parseStepName(std::string(name.substr(0, name.rfind('-'))));
}

std::optional<RunEntry> entryOf(const DirectoryEntry& found) {
  if (found.kind != FileKind::Directory)
    return std::nullopt;
  using State = RunEntry::State;
  std::string_view name = found.name;
  if (const auto step = parseStepName(found.name))
    return RunEntry{State::Committed, step, {}, 0, {}};
  if (take(name, attemptPrefix))
    return RunEntry{State::Saving, stepOf(name), {}, 0, {}};
  if (take(name, doomedPrefix))
    return RunEntry{State::Deleting, stepOf(name), {}, 0, {}};
  if (take(name, asidePrefix))
    return RunEntry{State::SetAside, stepOf(name), {}, 0, {}};
  return std::nullopt;
}

/// Of the tensors' files at and below `path`.
Result<int64_t> bytesBelow(Env& env, const std::string& path) {
  int64_t bytes = 0;
  for (const DirectoryEntry& entry : TITAN_TRY(env.readDirectory(path))) {
    const std::string child = joinPath(path, entry.name);
    if (entry.kind == FileKind::Directory)
      bytes += TITAN_TRY(bytesBelow(env, child));
    else if (entry.name.ends_with(tensorSuffix))
      bytes += TITAN_TRY(env.openFile(child))->size();
  }
  return bytes;
}

Status addHolder(Env& env, const std::string& directory, RunListing& listing) {
  const std::string path = lockPath(directory);
  if (TITAN_TRY(env.kindOf(path)) != FileKind::File)
    return {};
  // Asked before the text is read: a holder that comes between has written it.
  listing.isHeld = TITAN_TRY(env.tryLock(path, LockKind::Shared)) == nullptr;
  const LockText text = LockText::parse(TITAN_TRY(readWholeFile(env, path, maxLockBytes)));
  listing.holder = text.holder;
  for (RunEntry& entry : listing.entries)
    if (entry.state == RunEntry::State::Saving && text.save && entry.step == text.save->step)
      entry.total = text.save->bytes;
  return {};
}

/// Of committed checkpoints; is one of the hooks still to change?
Result<bool> addHooks(Env& env, const std::string& directory, RunListing& listing) {
  const std::map<int64_t, HookState> states = TITAN_TRY(readHookStates(env, directory));
  bool isOpen = false;
  for (RunEntry& entry : listing.entries) {
    const auto found =
        entry.state == RunEntry::State::Committed ? states.find(*entry.step) : states.end();
    if (found == states.end())
      continue;
    entry.hook = found->second;
    isOpen |= entry.hook->isOpen();
  }
  return isOpen;
}

/// What waits or runs for a process that holds the directory no more.
void closeHooks(RunListing& listing) {
  for (RunEntry& entry : listing.entries)
    if (entry.hook && entry.hook->isOpen() && (!listing.isHeld || entry.hook->by != listing.holder))
      entry.hook->kind = HookState::Kind::Unknown;
}

} // namespace

std::string lockPath(const std::string& directory) { return joinPath(directory, ".lock"); }

std::string LockText::toString() const {
  std::string text = holder;
  if (save)
    text += fmt::format("\n{}{}{}{}{}\n", savePrefix, save->step, saveMiddle, save->bytes, saveEnd);
  return text;
}

LockText LockText::parse(std::string_view text) {
  LockText parsed;
  const size_t end = text.find('\n');
  parsed.holder = text.substr(0, end);
  if (end == std::string_view::npos)
    return parsed;
  text.remove_prefix(end + 1);
  parsed.save = parseSave(text.substr(0, text.find('\n')));
  return parsed;
}

Result<RunListing> listRun(Env& env, const std::string& directory) {
  const std::string parent = checkpointsPath(directory);
  RunListing listing;
  if (TITAN_TRY(env.kindOf(parent)) == FileKind::Missing)
    return listing;
  bool isBusy = false;
  for (const DirectoryEntry& found : TITAN_TRY(env.readDirectory(parent))) {
    auto entry = entryOf(found);
    if (!entry)
      continue;
    entry->path = joinPath(parent, found.name);
    if (entry->state == RunEntry::State::Saving) {
      const auto bytes = bytesBelow(env, entry->path);
      if (!bytes.ok() && bytes.error().code() == ErrorCode::BadInput)
        continue; // it was published or given up since
      entry->bytes = TITAN_TRY(std::move(bytes));
    }
    isBusy |= entry->state == RunEntry::State::Saving || entry->state == RunEntry::State::Deleting;
    listing.entries.push_back(std::move(*entry));
  }
  std::ranges::sort(listing.entries, {}, [](const RunEntry& entry) {
    return std::tuple(entry.state, entry.step, entry.path);
  });
  if (TITAN_TRY(addHooks(env, directory, listing)) || isBusy)
    TITAN_TRY(addHolder(env, directory, listing));
  closeHooks(listing);
  return listing;
}

} // namespace titan::checkpoint
