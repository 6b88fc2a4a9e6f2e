#include "runtime/data/Dataset.h"

#include "runtime/data/TestFiles.h"

#include <cstring>
#include <numeric>

namespace titan {
namespace {

using test::bytesOf;

class DatasetTest : public test::FilesTest {
protected:
  static FieldSpec image(Shape shape = {2}) { return {"x", DType::F32, std::move(shape)}; }
  static FieldSpec labels() { return {"targets", DType::I64, {}, 10, -100, true}; }
  static FieldSpec tokens(Shape shape = {4}) { return {"ids", DType::I64, std::move(shape), 1000}; }
  static FieldSpec nextTokens(Shape shape = {4}) {
    return {"targets", DType::I64, std::move(shape), 1000, -100, true};
  }

  static std::unique_ptr<Dataset> open(std::vector<std::string> files,
                                       std::vector<FieldSpec> fields,
                                       const DataRecipe& recipe = {}) {
    auto dataset = openDataset(files, recipe, std::move(fields));
    EXPECT_TRUE(dataset.ok()) << dataset.error().message();
    return dataset.ok() ? dataset.take() : nullptr;
  }
  static std::string openError(std::vector<std::string> files, std::vector<FieldSpec> fields,
                               const DataRecipe& recipe = {}) {
    auto dataset = openDataset(files, recipe, std::move(fields));
    if (dataset.ok())
      return "";
    EXPECT_EQ(dataset.error().code(), ErrorCode::BadInput);
    return dataset.error().message();
  }
  template <typename T>
  static std::vector<T> row(const Dataset& dataset, int64_t sample, size_t field) {
    std::vector<T> values(static_cast<size_t>(dataset.sampleBytes(field)) / sizeof(T));
    const Status status = dataset.read(sample, field, reinterpret_cast<char*>(values.data()));
    EXPECT_TRUE(status.ok()) << status.error().message();
    return values;
  }

  const std::vector<float> x_ = {0, 1, 2, 3, 4, 5};
  const std::vector<int64_t> y_ = {7, 8, 9};
  std::string pair() const {
    const NamedArray arrays[] = {{"x", DType::F32, {3, 2}, bytesOf(x_)},
                                 {"targets", DType::I64, {3}, bytesOf(y_)}};
    return writeNpzFile("d.npz", arrays);
  }
};

TEST_F(DatasetTest, ReadsRows) {
  const auto dataset = open({pair()}, {image(), labels()});
  ASSERT_TRUE(dataset);
  EXPECT_EQ(dataset->size(), 3);
  EXPECT_EQ(dataset->tokensPerSample(), 0);
  EXPECT_EQ(row<float>(*dataset, 1, 0), (std::vector<float>{2, 3}));
  EXPECT_EQ(row<int64_t>(*dataset, 2, 1), (std::vector<int64_t>{9}));
}

TEST_F(DatasetTest, SeveralFilesAreOneSet) {
  const std::string path = pair();
  const auto dataset = open({path, path}, {image(), labels()});
  ASSERT_TRUE(dataset);
  EXPECT_EQ(dataset->size(), 6);
  EXPECT_EQ(row<float>(*dataset, 5, 0), (std::vector<float>{4, 5}));
  EXPECT_NE(dataset->digest(), open({path}, {image(), labels()})->digest());
}

TEST_F(DatasetTest, NpyFilesAreNamedByTheirStem) {
  DataRecipe recipe;
  recipe.fields = {{"x", "train_x"}};
  const auto dataset = open({writeNpy("train_x.npy", DType::F32, {3, 2}, x_),
                             writeNpy("targets.npy", DType::I64, {3}, y_)},
                            {image(), labels()}, recipe);
  ASSERT_TRUE(dataset);
  EXPECT_EQ(row<float>(*dataset, 2, 0), (std::vector<float>{4, 5}));
}

TEST_F(DatasetTest, ChannelsOfUint8ImagesAreFirstOrLast) {
  const std::vector<uint8_t> pixels = {0, 1, 2, 3, 4, 5};
  DataRecipe recipe;
  recipe.mean = {0, 10};
  const auto valuesOf = [&](const Shape& shape) {
    Shape whole = shape;
    whole.insert(whole.begin(), 1);
    return row<float>(*open({writeNpy("x.npy", DType::U8, whole, pixels)}, {image(shape)}, recipe),
                      0, 0);
  };
  EXPECT_EQ(valuesOf({2, 3}), (std::vector<float>{0, 1, 2, -7, -6, -5}));
  EXPECT_EQ(valuesOf({3, 2}), (std::vector<float>{0, -9, 2, -7, 4, -5}));
}

TEST_F(DatasetTest, Uint8ImagesAreScaled) {
  const std::vector<uint8_t> pixels = {0, 255, 51, 102};
  DataRecipe recipe;
  recipe.scale = 1.0 / 255;
  recipe.mean = {0.5, 0.25};
  recipe.std = {0.5};
  const auto dataset =
      open({writeNpy("x.npy", DType::U8, {1, 2, 1, 2}, pixels)}, {image({2, 1, 2})}, recipe);
  ASSERT_TRUE(dataset);
  const auto values = row<float>(*dataset, 0, 0);
  EXPECT_FLOAT_EQ(values[0], -1);
  EXPECT_FLOAT_EQ(values[1], 1);
  EXPECT_FLOAT_EQ(values[2], (0.2f - 0.25f) / 0.5f);
  EXPECT_FLOAT_EQ(values[3], (0.4f - 0.25f) / 0.5f);
}

TEST_F(DatasetTest, ScaleLeavesTheTargetAlone) {
  DataRecipe recipe;
  recipe.scale = 1.0 / 255;
  const std::vector<uint8_t> values = {0, 255};
  FieldSpec target = image();
  target.name = "targets";
  target.target = true;
  const auto dataset = open({writeNpy("x.npy", DType::U8, {1, 2}, values),
                             writeNpy("targets.npy", DType::U8, {1, 2}, values)},
                            {image(), target}, recipe);
  ASSERT_TRUE(dataset);
  EXPECT_EQ(row<float>(*dataset, 0, 0), (std::vector<float>{0, 1}));
  EXPECT_EQ(row<float>(*dataset, 0, 1), (std::vector<float>{0, 255}));
}

TEST_F(DatasetTest, WhatNothingIsScaledByIsRefused) {
  DataRecipe recipe;
  recipe.mean = {0.5, 0.25};
  recipe.std = {2};
  const std::string path = writeNpy("x.npy", DType::F32, {3, 2}, x_);
  EXPECT_EQ(
      openError({path}, {image()}, recipe),
      path + ": no array is scaled by data.mean, data.std, which is for inputs in U8; there "
             "are: x F32: scale them in the file, or remove data.mean, data.std from the recipe");
  const std::string text = write("t.txt", "abcdefghij");
  EXPECT_EQ(openError({text}, {tokens(), nextTokens()}, recipe),
            text + ": tokens are not scaled by data.mean, data.std: remove it from the recipe");
}

TEST_F(DatasetTest, Conversions) {
  const std::vector<double> wide = {0.1, -2};
  auto dataset = open({writeNpy("x.npy", DType::F64, {1, 2}, wide)}, {image()});
  ASSERT_TRUE(dataset);
  EXPECT_EQ(row<float>(*dataset, 0, 0), (std::vector<float>{0.1f, -2}));
  const std::vector<uint16_t> half = {0x3c00, 0xc000};
  dataset = open({writeNpy("x.npy", DType::F16, {1, 2}, half)}, {image()});
  ASSERT_TRUE(dataset);
  EXPECT_EQ(row<float>(*dataset, 0, 0), (std::vector<float>{1, -2}));
  const std::vector<uint8_t> labelBytes = {3, 9};
  dataset = open({writeNpy("targets.npy", DType::U8, {2}, labelBytes)}, {labels()});
  ASSERT_TRUE(dataset);
  EXPECT_EQ(row<int64_t>(*dataset, 1, 0), (std::vector<int64_t>{9}));
  const std::vector<int32_t> ignored = {-100, 9};
  dataset = open({writeNpy("targets.npy", DType::I32, {2}, ignored)}, {labels()});
  ASSERT_TRUE(dataset);
  EXPECT_EQ(row<int64_t>(*dataset, 0, 0), (std::vector<int64_t>{-100}));
}

TEST_F(DatasetTest, LabelOutOfRangeNamesSampleValueAndClasses) {
  const std::vector<int64_t> bad = {1, 10, 3};
  const std::string path = writeNpy("targets.npy", DType::I64, {3}, bad);
  EXPECT_EQ(
      openError({path}, {labels()}),
      path + ": array 'targets', sample 1: value 10 is not in [0, 10) and not ignore_index -100");
}

TEST_F(DatasetTest, IgnoredLabelsAreThoseOfTheTarget) {
  const std::vector<int64_t> ignored = {1, -100};
  const std::string path = writeNpy("labels.npy", DType::I64, {2}, ignored);
  EXPECT_EQ(openError({path}, {{"labels", DType::I64, {}, 10, 0}}),
            path + ": array 'labels', sample 1: value -100 is not in [0, 10); only labels of "
                   "loss.target may be loss.ignore_index");
}

TEST_F(DatasetTest, NarrowingIsChecked) {
  const std::vector<int64_t> big = {1, 1LL << 40};
  const std::string path = writeNpy("ids.npy", DType::I64, {1, 2}, big);
  EXPECT_EQ(openError({path}, {{"ids", DType::I32, {2}}}),
            path + ": array 'ids', sample 0: value 1099511627776 does not fit I32");
}

TEST_F(DatasetTest, ArrayRefusals) {
  const std::string path = pair();
  EXPECT_EQ(openError({path}, {{"x", DType::I64, {2}}}),
            path + ": array 'x': field 'x' needs I64, the array has F32");
  EXPECT_EQ(openError({path}, {image({3})}),
            path + ": array 'x' has shape [3, 2], field 'x' needs [samples, 3]");
  EXPECT_EQ(openError({path}, {{"y", DType::F32, {2}}}),
            path + ": no array 'y' for field 'y'; there are: x F32 [3, 2], targets I64 [3]; map "
                   "it with data.fields = { y = \"...\" }");
  const std::string two = writeNpy("targets.npy", DType::I64, {2}, std::vector<int64_t>{1, 2});
  const std::string x = writeNpy("x.npy", DType::F32, {3, 2}, x_);
  EXPECT_EQ(openError({x, two}, {image(), labels()}),
            x + ", " + two + ": field 'x' has 3 samples, field 'targets' has 2");
  EXPECT_EQ(openError({writeNpy("x.npy", DType::F32, {0, 2}, std::vector<float>{})}, {image()}),
            x + ": array 'x' for field 'x' holds 0 samples");
  EXPECT_NE(openError({}, {image()}).find("no data files"), std::string::npos);
  EXPECT_NE(openError({directory() + "/none.npz"}, {image()}).find("none.npz"), std::string::npos);
  EXPECT_NE(openError({write("x.csv", "1,2")}, {image()}).find("extension '.csv'"),
            std::string::npos);
  EXPECT_NE(openError({write("empty.npz", "")}, {image()}).find("empty.npz"), std::string::npos);
}

// --- Token files ---

TEST_F(DatasetTest, TextIsBytesInWindows) {
  const auto dataset = open({write("t.txt", "abcdefghij")}, {tokens(), nextTokens()});
  ASSERT_TRUE(dataset);
  EXPECT_EQ(dataset->size(), 2);
  EXPECT_EQ(dataset->tokensPerSample(), 4);
  EXPECT_EQ(row<int64_t>(*dataset, 1, 0), (std::vector<int64_t>{'e', 'f', 'g', 'h'}));
  EXPECT_EQ(row<int64_t>(*dataset, 1, 1), (std::vector<int64_t>{'f', 'g', 'h', 'i'}));
}

TEST_F(DatasetTest, BinaryTokensOfBothWidths) {
  std::vector<uint16_t> narrow(41);
  std::iota(narrow.begin(), narrow.end(), 100);
  const std::vector<uint32_t> wide(narrow.begin(), narrow.end());
  const auto bytes16 = bytesOf(narrow), bytes32 = bytesOf(wide);
  const auto first =
      open({write("n.bin", {bytes16.data(), bytes16.size()})}, {tokens(), nextTokens()});
  const auto second =
      open({write("w.bin", {bytes32.data(), bytes32.size()})}, {tokens(), nextTokens()});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->size(), 10);
  EXPECT_EQ(second->size(), 10);
  for (size_t field = 0; field < 2; ++field)
    EXPECT_EQ(row<int64_t>(*first, 9, field), row<int64_t>(*second, 9, field));
  EXPECT_EQ(row<int64_t>(*first, 9, 1).back(), 140);
}

TEST_F(DatasetTest, WindowsDoNotCrossFiles) {
  const std::string a = write("a.txt", "abcdef"), b = write("b.txt", "ABCDEFGHI");
  const auto dataset = open({a, b}, {tokens(), nextTokens()});
  ASSERT_TRUE(dataset);
  EXPECT_EQ(dataset->size(), 3);
  EXPECT_EQ(row<int64_t>(*dataset, 1, 0).front(), 'A');
  EXPECT_EQ(row<int64_t>(*dataset, 2, 1).back(), 'I');
}

TEST_F(DatasetTest, TokenRefusals) {
  const std::string path = write("t.txt", "abcd");
  EXPECT_EQ(openError({path}, {tokens(), nextTokens()}),
            path + ": 4 tokens are too few: a sample of 4 tokens and their targets needs 5");
  EXPECT_NE(openError({write("e.bin", "")}, {tokens()}).find("0 tokens are too few"),
            std::string::npos);
  EXPECT_NE(openError({write("o.bin", "abc")}, {tokens()})
                .find("3 bytes are not a whole number of uint16"),
            std::string::npos);
  EXPECT_NE(openError({path, pair()}, {tokens()}).find("mix arrays and tokens"), std::string::npos);

  std::vector<uint16_t> large(20, 5000);
  const auto bytes = bytesOf(large);
  EXPECT_EQ(openError({write("l.bin", {bytes.data(), bytes.size()})}, {tokens()}),
            directory() + "/l.bin: token 0 is 5000, field 'ids' takes [0, 1000)");
  // The smallest vocabulary counts, whichever field has it.
  FieldSpec letters = nextTokens();
  letters.classes = 123;
  EXPECT_EQ(openError({write("z.txt", "abcdefgh|")}, {tokens(), letters}),
            directory() + "/z.txt: token 8 is 124, field 'targets' takes [0, 123)");
}

TEST_F(DatasetTest, ElementsOfASampleHaveClassesOfTheirOwn) {
  FieldSpec columns{"c", DType::I64, {4}};
  columns.classes = 9;
  columns.ignoreIndex = 0;
  columns.runs = {{1, 4}, {1, 0}};
  const std::vector<uint8_t> good = {3, 8, 0, 8}, large = {3, 8, 4, 8}, outside = {3, 9, 3, 8};
  const auto at = [&](const std::vector<uint8_t>& values) {
    return writeNpy("c.npy", DType::U8, {1, 4}, values);
  };
  EXPECT_EQ(row<int64_t>(*open({at(good)}, {columns}), 0, 0), (std::vector<int64_t>{3, 8, 0, 8}));
  EXPECT_EQ(openError({at(large)}, {columns}),
            directory() + "/c.npy: array 'c', sample 0: value 4, element 2, is not in [0, 4)");
  EXPECT_EQ(openError({at(outside)}, {columns}),
            directory() + "/c.npy: array 'c', sample 0: value 9, element 1, is not in [0, 9)");
}

TEST_F(DatasetTest, WithoutTargetsAWindowNeedsNoTokenBehindIt) {
  const std::string path = write("t.txt", "abcdefgh");
  EXPECT_EQ(open({path}, {tokens()})->size(), 2);
  EXPECT_EQ(open({path}, {tokens(), nextTokens()})->size(), 1);
}

TEST_F(DatasetTest, OtherInputsOfLanguageModels) {
  const std::string path = write("t.txt", "abcdefgh");
  const auto dataset = open({path}, {{"attention_mask", DType::F32, {4}},
                                     tokens(),
                                     {"position_ids", DType::I64, {4}},
                                     {"token_type_ids", DType::I32, {4}}});
  ASSERT_TRUE(dataset);
  EXPECT_EQ(row<float>(*dataset, 1, 0), (std::vector<float>{1, 1, 1, 1}));
  EXPECT_EQ(row<int64_t>(*dataset, 1, 1), (std::vector<int64_t>{'e', 'f', 'g', 'h'}));
  EXPECT_EQ(row<int64_t>(*dataset, 1, 2), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(row<int32_t>(*dataset, 1, 3), (std::vector<int32_t>{0, 0, 0, 0}));
}

TEST_F(DatasetTest, FieldsSayWhatAnInputReads) {
  const std::string path = write("t.txt", "abcdefghi");
  const std::vector<FieldSpec> fields = {tokens(), {"labels", DType::I64, {4}, 1000}};
  DataRecipe recipe;
  recipe.fields = {{"labels", "next"}};
  const auto dataset = open({path}, fields, recipe);
  ASSERT_TRUE(dataset);
  EXPECT_EQ(row<int64_t>(*dataset, 1, 1), (std::vector<int64_t>{'f', 'g', 'h', 'i'}));
  recipe.fields = {{"labels", "tokens"}};
  EXPECT_EQ(open({path}, fields, recipe)->size(), 2);
}

TEST_F(DatasetTest, TokenFieldRefusals) {
  const std::string path = write("t.txt", "abcdefgh");
  EXPECT_EQ(openError({path}, {tokens(), {"labels", DType::I64, {4}}}),
            path + ": 'ids' reads the tokens; what does 'labels' read? say it with data.fields = { "
                   "labels = \"tokens\" } (or next, positions, ones, zeros)");
  EXPECT_EQ(openError({path}, {image({4})}),
            path + ": field 'x' needs F32: token files hold integers");
  EXPECT_EQ(openError({path}, {{"position_ids", DType::I64, {4}}}),
            path + ": token files give an input, the model reads none");
  EXPECT_EQ(openError({path}, {tokens(), {"position_ids", DType::I64, {1}}}),
            path + ": field 'ids' [4] and field 'position_ids' [1] must have the same number of "
                   "tokens");
  DataRecipe recipe;
  recipe.fields = {{"ids", "words"}};
  EXPECT_EQ(openError({path}, {tokens()}, recipe),
            path + ": data.fields.ids = \"words\": token files have tokens, next, positions, ones "
                   "and zeros");
}

TEST_F(DatasetTest, DigestIsOfTheContents) {
  const std::string path = pair();
  const uint64_t digest = open({path}, {image(), labels()})->digest();
  std::filesystem::rename(path, directory() + "/moved.npz");
  EXPECT_EQ(open({directory() + "/moved.npz"}, {image(), labels()})->digest(), digest);
  EXPECT_NE(open({write("a.txt", "abcdefgh")}, {tokens()})->digest(),
            open({write("a.txt", "abcdefgH")}, {tokens()})->digest());
}

} // namespace
} // namespace titan
