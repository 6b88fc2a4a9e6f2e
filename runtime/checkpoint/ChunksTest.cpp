// The lists of chunk digests: damage is found where it is, in a file as well as in its list.
#include "runtime/checkpoint/Chunks.h"
#include "runtime/checkpoint/testing/SampleState.h"
#include "runtime/checkpoint/testing/TemporaryDirectory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace titan::checkpoint {
namespace {

constexpr const char* shard = "/model/shard-00001-model-00001-of-00001.safetensors";

std::string readFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void writeFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

TEST(Chunks, OfAStreamDependOnItsBytesAlone) {
  std::string bytes(static_cast<size_t>(2 * chunkBytes + 5), '\0');
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(i * 7 + i / 251);
  const auto part = [&](int64_t chunk) {
    return std::string_view(bytes).substr(static_cast<size_t>(chunk * chunkBytes),
                                          static_cast<size_t>(chunkBytes));
  };
  std::string expected;
  for (int64_t chunk = 0; chunk < chunkCount(static_cast<int64_t>(bytes.size())); ++chunk) {
    Digest digest;
    digest.update(part(chunk));
    expected += digest.bytes();
  }
  EXPECT_EQ(expected.size(), 3 * 16u);
  for (size_t step : {size_t{1000003}, bytes.size(), size_t{chunkBytes}, size_t{chunkBytes - 1}}) {
    ChunkDigests digests;
    for (size_t at = 0; at < bytes.size(); at += step)
      digests.update(std::string_view(bytes).substr(at, step));
    EXPECT_EQ(digests.finish(), expected) << step;
  }
  EXPECT_EQ(chunkCount(0), 0);
  EXPECT_EQ(chunkCount(chunkBytes), 1);
  EXPECT_TRUE(ChunkDigests().finish().empty());
}

TEST(Chunks, HaveTheDigestsThatHexPrints) {
  Digest digest;
  digest.update("titan");
  std::string hex;
  for (const char byte : digest.bytes())
    hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  EXPECT_EQ(hex, digest.hex());
  digest.reset();
  digest.update("titan");
  EXPECT_EQ(digest.hex(), digestOf("titan"));
}

/// One checkpoint whose model takes four chunks: "a" ends in the second, "b" in the third.
class ChunkDamage : public testing::Test {
protected:
  static SampleState sample(uint8_t fill) {
    SampleState state;
    state.add("a", StateKind::Param, DType::U8, {chunkBytes + 100});
    state.add("b", StateKind::Param, DType::U8, {chunkBytes + 100});
    state.add("c", StateKind::Param, DType::U8, {chunkBytes});
    state.refill(fill);
    return state;
  }
  void SetUp() override {
    auto store = CheckpointStore::open(directory_.path());
    ASSERT_TRUE(store->save(sample(3).saveRequest(1), 0).ok());
    file_ = path_ + shard;
  }

  /// Both verify and load refuse, in one line; the state stays as it is.
  std::string refusal() {
    SampleState state = sample(200);
    const auto loaded = load(path_, state.loadRequest());
    EXPECT_TRUE(state == sample(200));
    const auto verified = verify(path_);
    EXPECT_FALSE(loaded.ok() || verified.ok());
    if (loaded.ok() || verified.ok())
      return "";
    EXPECT_EQ(loaded.error().message(), verified.error().message());
    EXPECT_EQ(loaded.error().code(), ErrorCode::BadInput);
    EXPECT_EQ(loaded.error().message().find('\n'), std::string::npos);
    return verified.error().message();
  }
  void expectRefusal(const std::string& file, std::vector<std::string> parts) {
    const std::string text = refusal();
    EXPECT_TRUE(text.starts_with(fmt::format("'{}' is damaged: ", file))) << text;
    for (const std::string& part : parts)
      EXPECT_NE(text.find(part), std::string::npos) << part << " is not in " << text;
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.path("checkpoints/step-00000001"), file_;
};

TEST_F(ChunkDamage, OfAByteNamesItsChunkAndTensors) {
  const std::string bytes = readFile(file_);
  const int64_t chunks = chunkCount(static_cast<int64_t>(bytes.size()));
  ASSERT_EQ(chunks, 4);
  const char* tensors[] = {"tensor", "tensors 'a', 'b'", "tensors 'b', 'c'", "tensor"};
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    // Its first byte, its last, and one between.
    for (int64_t at : {chunk * chunkBytes + (chunk == 0 ? chunkBytes / 2 : 0),
                       chunk * chunkBytes + 50 + (chunk == 0 ? chunkBytes / 2 : 0),
                       std::min((chunk + 1) * chunkBytes, int64_t(bytes.size())) - 1}) {
      std::string changed = bytes;
      changed[static_cast<size_t>(at)] ^= 1;
      writeFile(file_, changed);
      expectRefusal(file_, {fmt::format("of chunk {} (bytes {} to ", chunk, chunk * chunkBytes),
                            tensors[chunk], "expected digest ", ", found "});
    }
  writeFile(file_, bytes);
  EXPECT_TRUE(verify(path_).ok());
}

TEST_F(ChunkDamage, OfTheHeaderNamesTheFirstChunk) {
  std::string bytes = readFile(file_);
  bytes[40] ^= 1;
  writeFile(file_, bytes);
  expectRefusal(file_, {"of chunk 0 (bytes 0 to 1048575"});
}

TEST_F(ChunkDamage, OfTheListNamesTheListTheChunkAndItsTensors) {
  const std::string list = readFile(file_ + ".chunks");
  ASSERT_EQ(list.size(), 4 * 16u);
  for (size_t at = 0; at < list.size(); at += 5) {
    std::string changed = list;
    changed[at] ^= 1;
    writeFile(file_ + ".chunks", changed);
    expectRefusal(file_ + ".chunks", {fmt::format("the digest of chunk {} (bytes ", at / 16),
                                      at / 16 == 1 ? "tensors 'a', 'b'" : "tensor"});
  }
  writeFile(file_ + ".chunks", list.substr(0, 24));
  expectRefusal(file_ + ".chunks",
                {"expected 64 bytes, found 24: no digest of chunk 1", "tensors 'a', 'b'"});
  writeFile(file_ + ".chunks", list + "x");
  expectRefusal(file_ + ".chunks", {"expected 64 bytes, found 65"});
  std::filesystem::remove(file_ + ".chunks");
  EXPECT_NE(refusal().find(file_ + ".chunks"), std::string::npos);
}

TEST_F(ChunkDamage, OfBothNamesTheFile) {
  std::string bytes = readFile(file_), list = readFile(file_ + ".chunks");
  bytes[bytes.size() - 1] ^= 1;
  writeFile(file_, bytes);
  writeFile(file_ + ".chunks", list.substr(0, 20));
  EXPECT_TRUE(refusal().starts_with(fmt::format("'{}' is damaged: expected digest", file_)));
}

TEST_F(ChunkDamage, OfAListThatFitsTheManifestIsFoundToo) {
  // A list that was wrong before the manifest was sealed: the file is sound, so the list is not.
  std::string list = readFile(file_ + ".chunks");
  list[17] ^= 1;
  writeFile(file_ + ".chunks", list);
  Manifest manifest = *readManifest(path_);
  for (FileRecord& file : manifest.files)
    if (file.chunks && file_.ends_with(file.path))
      file.chunks->digest = digestOf(list);
  writeFile(path_ + "/manifest.json", toJson(manifest));
  expectRefusal(file_ + ".chunks", {"the digest of chunk 1 ", "tensors 'a', 'b'"});
}

TEST_F(ChunkDamage, IsNotLookedForWhereThereIsNoList) {
  Manifest manifest = *readManifest(path_);
  for (FileRecord& file : manifest.files)
    file.chunks.reset();
  writeFile(path_ + "/manifest.json", toJson(manifest));
  EXPECT_TRUE(verify(path_).ok());
  std::string bytes = readFile(file_);
  bytes.back() ^= 1;
  writeFile(file_, bytes);
  expectRefusal(file_, {"expected digest "});
}

} // namespace
} // namespace titan::checkpoint
