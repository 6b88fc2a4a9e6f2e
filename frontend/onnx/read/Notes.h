// What the user should know of an import: one line a cause, with all that it is true of.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace titan::frontend {

/// Both are formats: `one` of the one thing that a note is about, `several` of their number and
/// their list.
struct NoteCause {
  std::string_view one, several;
};

class Notes {
public:
  /// A note about nothing in particular; said twice it is one line.
  void add(std::string text);
  /// A note about `about`, as it is shown ("'fc.weight'"). `cause` outlives the notes.
  void add(const NoteCause& cause, std::string about);
  void append(const Notes& others);

  /// In the order in which the causes came up, as printed after "note: ".
  std::vector<std::string> lines() const;

private:
  struct Group {
    NoteCause cause;  ///< of a text of its own: empty
    std::string text; ///< or this
    std::vector<std::string> about;
    std::set<std::string> known; ///< what `about` lists
  };
  Group& groupOf(const NoteCause& cause, const std::string& text);

  std::vector<Group> groups_;
  std::map<std::string, size_t, std::less<>> byCause_; ///< by text or `one`
};

} // namespace titan::frontend
