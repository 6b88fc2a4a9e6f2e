#include "frontend/onnx/read/Notes.h"

#include <gtest/gtest.h>

namespace titan::frontend {
namespace {

using Lines = std::vector<std::string>;

constexpr NoteCause kUnused = {"{} is not used", "{} are not used: {}"};
constexpr NoteCause kLost = {"{} is lost", "{} are lost: {}"};

TEST(Notes, OfOneCauseAreOneLine) {
  Notes notes;
  notes.add(kUnused, "'a'");
  notes.add(kLost, "'b {}'");
  EXPECT_EQ(notes.lines(), (Lines{"'a' is not used", "'b {}' is lost"}));
  for (int copy = 0; copy < 18; ++copy)
    notes.add(kUnused, "'a'");
  notes.add(kUnused, "'c'");
  notes.add(kUnused, "'a'");
  EXPECT_EQ(notes.lines(), (Lines{"2 are not used: 'a', 'c'", "'b {}' is lost"}));
}

TEST(Notes, OfTheirOwnTextAreOneLineEach) {
  Notes notes;
  notes.add("training_info is ignored {}");
  notes.add("training_info is ignored {}");
  EXPECT_EQ(notes.lines(), (Lines{"training_info is ignored {}"}));
}

TEST(Notes, AreGroupedAlsoWhenTheyComeFromTwoPlaces) {
  Notes graph, names;
  graph.add("of the file");
  graph.add(kUnused, "'a'");
  names.add(kLost, "'b'");
  names.add(kUnused, "'c'");
  names.add("of the file");
  graph.append(names);
  EXPECT_EQ(graph.lines(), (Lines{"of the file", "2 are not used: 'a', 'c'", "'b' is lost"}));
}

} // namespace
} // namespace titan::frontend
