// Checkpoints of jobs on ranks: saved on one mesh and loaded on another, each byte written and read
// once, and what is wrong for one rank ends all.
#include "runtime/checkpoint/Convert.h"
#include "runtime/checkpoint/LoadBlocks.h"
#include "runtime/checkpoint/ReadCheckpoint.h"
#include "runtime/checkpoint/SavePlan.h"
#include "runtime/checkpoint/WriteState.h"
#include "runtime/checkpoint/testing/FaultEnv.h"
#include "runtime/checkpoint/testing/RankDisk.h"
#include "runtime/checkpoint/testing/SampleState.h"
#include "runtime/collective/testing/RankThreads.h"
#include "runtime/program/Collective.h"
#include "runtime/program/Random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <set>

namespace titan::checkpoint {
namespace {

using titan::testing::onRanks;

struct Draw {
  uint64_t key, count = 0;
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(uniformDraw(key, 0, count++) * static_cast<float>(bound));
  }
};

const Mesh& drawMesh(Draw& draw) {
  static const std::vector<Mesh> meshes = {
      {},
      {{"shard", 2}},
      {{"shard", 3}},
      {{"shard", 4}},
      {{"replicate", 2}},
      {{"replicate", 2}, {"shard", 2}},
      {{"replicate", 2}, {"shard", 3}},
      {{"replicate", 3}, {"shard", 2}},
      {{"replicate", 1}, {"shard", 4}},
  };
  return meshes[static_cast<size_t>(draw.below(static_cast<int64_t>(meshes.size())))];
}

/// Each axis cuts a drawn dimension or none; two may cut the same, in either order.
Placement drawPlacement(Draw& draw, const Shape& shape, const Mesh& mesh) {
  Placement placement;
  for (size_t axis = 0; axis < mesh.size(); ++axis)
    if (const int64_t dim = draw.below(static_cast<int64_t>(shape.size()) + 1) - 1; dim >= 0)
      placement.push_back({static_cast<uint8_t>(axis), dim});
  if (draw.below(2) == 0)
    std::ranges::reverse(placement);
  return placement;
}

std::vector<Tensor> drawTensors(Draw& draw, const Mesh& mesh) {
  std::vector<Tensor> tensors = {
      {"ten", StateKind::Param, DType::F32, {10}, {}},
      {"one", StateKind::Param, DType::F32, {1}, {}},
      {"seven", StateKind::Param, DType::BF16, {7}, {}},
      {"matrix", StateKind::Param, DType::F32, {3, 5}, {}},
      {"cube", StateKind::Buffer, DType::F64, {6, 4, 3}, {}},
      {"scalar", StateKind::Buffer, DType::I64, {}, {}},
      {"bytes", StateKind::Buffer, DType::U8, {13, 3}, {}},
      {"empty", StateKind::Buffer, DType::F32, {0, 4}, {}},
      {"wide", StateKind::Param, DType::F32, {33, 70}, {}},
      {"matrix.exp_avg", StateKind::Slot, DType::F32, {3, 5}, {}},
      {"wide.exp_avg", StateKind::Slot, DType::F32, {33, 70}, {}},
      {"matrix", StateKind::Ema, DType::F32, {3, 5}, {}},
  };
  for (Tensor& tensor : tensors)
    tensor.placement = drawPlacement(draw, tensor.shape, mesh);
  return tensors;
}

/// Tensors of some MB each, cut or not.
std::vector<Tensor> largeTensors(const Placement& placement) {
  std::vector<Tensor> tensors;
  for (const char* name : {"a", "b", "c"}) {
    tensors.push_back({name, StateKind::Param, DType::F32, {1000, 700}, placement});
    tensors.push_back(
        {fmt::format("{}.exp_avg", name), StateKind::Slot, DType::F32, {1000, 700}, placement});
  }
  return tensors;
}

TEST(Ranks, AnyMeshLoadsWhatAnyMeshSaved) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Draw draw{seed};
    const Mesh saving = drawMesh(draw), loading = drawMesh(draw);
    RankDisk disk;
    saveOn(disk, drawTensors(draw, saving), saving);
    EXPECT_TRUE(verify(stepPath(1), *disk.files).ok());
    for (const std::string& differing :
         loadOn(disk, drawTensors(draw, loading), loading, 1, /*hasWindow=*/seed % 3 != 0))
      ASSERT_EQ(differing, "");
  }
}

TEST(Ranks, WhatALoadSendsRoundIsPlanned) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Draw draw{seed};
    const Mesh mesh = drawMesh(draw);
    const std::vector<Tensor> tensors = drawTensors(draw, mesh);
    RankDisk disk;
    saveOn(disk, tensors, mesh);
    loadOn(disk, tensors, mesh, 1, /*hasWindow=*/true, /*isOwn=*/true);
  }
  // Where everything is replicated, every block goes round but once.
  const Mesh mesh = {{"replicate", 3}};
  const std::vector<Tensor> tensors = largeTensors({});
  RankDisk disk;
  saveOn(disk, tensors, mesh);
  int64_t bytes = 0, blocks = 0;
  for (const FileRecord& file : readManifest(stepPath(1), *disk.files).take().files)
    if (file.path.ends_with(".safetensors")) {
      bytes += file.bytes;
      blocks += chunkCount(file.bytes);
    }
  Traffic all;
  for (int64_t rank = 0; rank < 3; ++rank) {
    const Traffic each = ownLoadTraffic(MeshState(tensors, mesh, rank).program(), rank).take();
    EXPECT_EQ(each.executions, blocks);
    EXPECT_EQ(each.payload + each.moved, bytes + blocks);
    all.payload += each.payload;
  }
  EXPECT_EQ(all.payload, bytes + blocks);
  loadOn(disk, tensors, mesh, 1, /*hasWindow=*/true, /*isOwn=*/true);
}

/// What two ranks of a mesh have alike is written once; what one has alone, by that one.
TEST(Ranks, WriteEachByteOnce) {
  const Mesh mesh = {{"replicate", 2}, {"shard", 2}};
  const std::vector<Tensor> tensors = {
      {"w", StateKind::Param, DType::F32, {101, 40}, {{1, 0}}},
      {"b", StateKind::Param, DType::F32, {40}, {}},
      {"one", StateKind::Param, DType::F32, {1}, {{1, 0}}},
      {"w.exp_avg", StateKind::Slot, DType::F32, {101, 40}, {{1, 1}, {0, 0}}},
      {"b.exp_avg", StateKind::Slot, DType::F32, {40}, {{1, 0}}},
      {"b", StateKind::Ema, DType::F32, {40}, {}},
  };
  RankDisk disk;
  saveOn(disk, tensors, mesh);
  std::set<std::tuple<std::string, std::string, Shape>> pieces;
  int64_t bytes = 0;
  for (const auto& [rank, env] : disk.ranks)
    for (const auto& [path, written] : env->bytesWritten())
      bytes += written;
  // "w" and "one" have no average: its folder has copies.
  const int64_t copies = (101 * 40 + 1) * 4;
  EXPECT_LE(bytes, MeshState::bytesOf(tensors) + copies + rankCount(mesh) * (64 << 10));
  const Manifest manifest = readManifest(stepPath(1), *disk.files).take();
  std::vector<std::string> files;
  for (const FileRecord& file : manifest.files) {
    files.push_back(file.path);
    auto opened = StoredFile::open(*disk.files, joinPath(stepPath(1), file.path), &file);
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    EXPECT_FALSE(opened->header().entries.empty()) << file.path;
    for (const SafetensorsEntry& entry : opened->header().entries) {
      EXPECT_GT(entry.bytes(), 0) << file.path;
      EXPECT_TRUE(pieces.emplace(parentPath(file.path), entry.name, entry.offsets).second)
          << entry.name << " twice";
    }
  }
  // Rank 1 has no element of "one"; 2 and 3 only have slots of their own. No index: "w" is cut.
  EXPECT_EQ(files,
            (std::vector<std::string>{"model/shard-00001-model-00001-of-00001.safetensors",
                                      "optimizer/shard-00001-model-00001-of-00001.safetensors",
                                      "ema-slow/shard-00001-model-00001-of-00001.safetensors",
                                      "model/shard-00002-model-00001-of-00001.safetensors",
                                      "optimizer/shard-00002-model-00001-of-00001.safetensors",
                                      "ema-slow/shard-00002-model-00001-of-00001.safetensors",
                                      "optimizer/shard-00003-model-00001-of-00001.safetensors",
                                      "optimizer/shard-00004-model-00001-of-00001.safetensors"}));
}

/// All files of a directory and below, with their bytes.
std::map<std::string, std::string> treeOf(Env& env, const std::string& path) {
  std::map<std::string, std::string> files;
  const auto entries = env.readDirectory(path);
  for (const DirectoryEntry& entry : *entries)
    if (entry.kind == FileKind::Directory)
      for (auto& [name, bytes] : treeOf(env, joinPath(path, entry.name)))
        files[joinPath(entry.name, name)] = bytes;
    else
      files[entry.name] = *readWholeFile(env, joinPath(path, entry.name), 1 << 26);
  return files;
}

TEST(Ranks, WriteWhatOneRankWritesWhereAllIsWhole) {
  std::vector<Tensor> tensors = {{"w", StateKind::Param, DType::F32, {5, 3}, {}},
                                 {"w.exp_avg", StateKind::Slot, DType::F32, {5, 3}, {}}};
  RankDisk one, ranks, zero;
  saveOn(one, tensors, {});
  saveOn(ranks, tensors, {{"replicate", 3}});
  auto expected = treeOf(*one.files, stepPath(1)), found = treeOf(*ranks.files, stepPath(1));
  EXPECT_TRUE(expected.contains("model/model.safetensors.index.json"));
  // The manifests have another mesh.
  expected.erase("manifest.json"), found.erase("manifest.json");
  EXPECT_EQ(found, expected);

  tensors[1].placement = {{0, 0}}; // the model is whole, so its folder has the index
  saveOn(zero, tensors, {{"shard", 3}});
  found = treeOf(*zero.files, stepPath(1));
  EXPECT_TRUE(found.contains("model/model.safetensors.index.json"));
  EXPECT_TRUE(found.contains("optimizer/shard-00003-model-00001-of-00001.safetensors"));
  EXPECT_FALSE(found.contains("model/shard-00003-model-00001-of-00001.safetensors"));
}

TEST(Ranks, ReadEachBlockOnce) {
  const Mesh four = {{"shard", 4}}, pairs = {{"replicate", 2}, {"shard", 2}};
  struct Case {
    Mesh saving, loading;
    Placement saved, loaded;
  };
  const Case cases[] = {
      {four, four, {{0, 0}}, {{0, 0}}},  // the same mesh
      {{}, four, {}, {{0, 0}}},          // from one rank
      {four, four, {{0, 0}}, {}},        // to whole states
      {four, pairs, {{0, 0}}, {{1, 0}}}, // to two replicas
      {pairs, four, {{1, 0}}, {{0, 0}}}, //
      {four, four, {{0, 0}}, {{0, 1}}},  // across
      {pairs, pairs, {{0, 0}, {1, 1}}, {{1, 0}}},
  };
  const int64_t state = MeshState::bytesOf(largeTensors({}));
  for (const Case& test : cases) {
    SCOPED_TRACE(fmt::format("case {}", &test - cases));
    RankDisk disk;
    saveOn(disk, largeTensors(test.saved), test.saving);
    disk.ranks.clear();
    for (const std::string& differing : loadOn(disk, largeTensors(test.loaded), test.loading))
      EXPECT_EQ(differing, "");
    constexpr int64_t headers = 64 << 10;
    int64_t all = 0;
    for (const auto& [rank, env] : disk.ranks) {
      const int64_t boxes = MeshState(largeTensors(test.loaded), test.loading, rank).bytes();
      EXPECT_LE(env->bytesRead(), boxes + boxes / 10 + headers) << "rank " << rank;
      all += env->bytesRead();
    }
    EXPECT_LE(all, state + state / 10);
  }
}

/// Flips the lowest bit of a byte.
void damage(CrashEnv& env, const std::string& path, int64_t position) {
  std::string bytes = *readWholeFile(env, path, 1 << 26);
  bytes[static_cast<size_t>(position)] ^= 1;
  ASSERT_TRUE(env.removeFile(path).ok());
  auto file = env.createFile(path).take();
  ASSERT_TRUE(file->append(bytes).ok() && file->close().ok());
}

std::string shardOf(int64_t rank, const char* folder = "model") {
  return joinPath(stepPath(1), joinPath(folder, shardFileName(rank + 1, 1, 1)));
}

TEST(Ranks, AFlippedBitInABlockOfOneRankEndsAll) {
  RankDisk disk;
  const auto tensors = largeTensors({{0, 0}});
  saveOn(disk, tensors, {{"shard", 4}});
  damage(*disk.files, shardOf(3), 2'000'000);
  for (const std::string& error : onRanks(4, [&](Peers& peers) {
         MeshState state(tensors, {{"shard", 4}}, peers.rank());
         state.fill(255);
         auto report = load(stepPath(1), state.loadRequest(&peers), disk.of(peers));
         EXPECT_EQ(report.error().code(), ErrorCode::BadInput);
         state.fill(0);
         return report.error().message();
       })) {
    EXPECT_TRUE(
        error.starts_with(fmt::format("rank 3: '{}' is damaged: expected digest ", shardOf(3))))
        << error;
    EXPECT_NE(error.find(" of chunk 1 (bytes 1048576 to 2097151, tensors 'b', 'c'), found "),
              std::string::npos)
        << error;
  }
}

TEST(Ranks, AFlippedBitAnywhereEndsALoad) {
  // Small files: one block each, which several ranks need; and lists, headers and the manifest.
  const Mesh mesh = {{"replicate", 2}, {"shard", 2}};
  Draw draw{5};
  const auto tensors = drawTensors(draw, mesh);
  RankDisk whole;
  saveOn(whole, tensors, mesh);
  for (const auto& [name, bytes] : treeOf(*whole.files, stepPath(1)))
    for (const double place : {0.0, 0.3, 0.99}) {
      const auto position = static_cast<int64_t>(place * static_cast<double>(bytes.size()));
      SCOPED_TRACE(fmt::format("byte {} of {}", position, name));
      RankDisk disk(whole.files->clone());
      damage(*disk.files, joinPath(stepPath(1), name), position);
      for (std::string error : loadOn(disk, tensors, mesh)) {
        // Of a block that has copies for a profile alone, no rank needs anything; a check does.
        if (error.empty() && name.starts_with("ema-"))
          error = verify(stepPath(1), *disk.files).error().message();
        EXPECT_NE(error.find("damaged"), std::string::npos) << error;
      }
    }
}

TEST(Ranks, TheNewestDamagedCheckpointNamesAGoodOne) {
  RankDisk disk;
  const auto tensors = largeTensors({{0, 0}});
  const Mesh mesh = {{"shard", 2}};
  for (int64_t step : {1, 2})
    saveOn(disk, tensors, mesh, step);
  damage(*disk.files, joinPath(stepPath(2), "model/" + shardFileName(2, 1, 1)), 3'000'000);
  for (const std::string& error : onRanks(2, [&](Peers& peers) {
         MeshState state(tensors, mesh, peers.rank());
         return loadLatest(runDirectory, state.loadRequest(&peers), disk.of(peers))
             .error()
             .message();
       })) {
    EXPECT_TRUE(error.starts_with("rank 1: '")) << error;
    EXPECT_NE(error.find(fmt::format("'{}': train --resume good", stepPath(1))), std::string::npos)
        << error;
  }
}

TEST(Ranks, ALoadThatDoesNotFitIsRefusedOnAllRanks) {
  RankDisk disk;
  const Mesh mesh = {{"shard", 2}};
  saveOn(disk, {{"w", StateKind::Param, DType::F32, {5}, {{0, 0}}}}, mesh);
  for (const std::string& error :
       loadOn(disk, {{"w", StateKind::Param, DType::F32, {6}, {{0, 0}}}}, mesh))
    EXPECT_NE(error.find("! w is F32 [5], the program wants F32 [6]"), std::string::npos) << error;
}

TEST(Ranks, LoadCheckpointsWithoutListsOfChunks) {
  // As version 1 has none: each file is read whole by one rank.
  RankDisk disk;
  const Mesh mesh = {{"shard", 3}};
  const auto tensors = largeTensors({{0, 0}});
  saveOn(disk, tensors, mesh);
  Manifest manifest = readManifest(stepPath(1), *disk.files).take();
  for (FileRecord& file : manifest.files)
    file.chunks.reset();
  const std::string path = joinPath(stepPath(1), Manifest::fileName);
  ASSERT_TRUE(disk.files->removeFile(path).ok());
  {
    auto file = disk.files->createFile(path).take();
    ASSERT_TRUE(file->append(toJson(manifest)).ok() && file->close().ok());
  }
  for (const Mesh& loading : {mesh, Mesh{{"replicate", 2}}})
    for (const std::string& differing : loadOn(disk, largeTensors({{0, 0}}), loading))
      EXPECT_EQ(differing, "");
  damage(*disk.files, shardOf(1), 2'000'000);
  for (const std::string& error : loadOn(disk, tensors, mesh))
    EXPECT_TRUE(
        error.starts_with(fmt::format("rank {}: '{}' is damaged: expected digest ", 1, shardOf(1))))
        << error;
}

TEST(Ranks, TheHeaderThatWasParsedIsTheOneThatIsRead) {
  RankDisk disk;
  const std::vector<Tensor> tensors = {{"w", StateKind::Param, DType::F32, {5}, {}}};
  saveOn(disk, tensors, {});
  Peers alone;
  MeshState state(tensors, {}, 0);
  const LoadRequest request = state.loadRequest(&alone);
  const Manifest manifest = readManifest(stepPath(1), *disk.files).take();
  const StoredTensors stored =
      openModel(stepPath(1), manifest, *disk.files, Reading::Header).take();
  Catalog catalog =
      Catalog::of({{&request.destinations[0], &stored.tensors().at("w")}}, request.destinations);
  catalog = Catalog::parse(catalog.toBytes()).take();
  EXPECT_EQ(messageOf(loadBlocks(catalog, request.destinations, {}, alone, *disk.files)), "");
  catalog.files[0].header[0] ^= 1;
  EXPECT_EQ(messageOf(loadBlocks(catalog, request.destinations, {}, alone, *disk.files)),
            fmt::format("'{}' changed while it was loaded: its header is another", shardOf(0)));
  EXPECT_EQ(Catalog::parse("x").error().message(), "the catalog of a load is no object");
}

TEST(Ranks, InitTakesWeightsOfAnyMesh) {
  RankDisk disk;
  const auto tensors = largeTensors({{0, 1}});
  saveOn(disk, tensors, {{"shard", 2}});
  const Mesh mesh = {{"shard", 3}};
  // A checkpoint, and its files as anybody's, with no digest.
  for (const std::string& path : {stepPath(1), joinPath(stepPath(1), "model")})
    for (const std::string& differing : onRanks(3, [&](Peers& peers) {
           MeshState state(largeTensors({{0, 0}}), mesh, peers.rank());
           state.fill(255);
           auto report = loadWeights(path, state.initRequest(&peers), disk.of(peers));
           return report.ok() ? state.differing(1) : report.error().message();
         }))
      EXPECT_EQ(differing, "a.exp_avg"); // slots are left alone
  for (const std::string& error : onRanks(3, [&](Peers& peers) {
         MeshState state(largeTensors({{0, 0}}), mesh, peers.rank());
         return loadWeights("nowhere", state.initRequest(&peers), disk.of(peers)).error().message();
       }))
    EXPECT_EQ(error, "no such file or directory: 'nowhere'");
}

/// The bytes of a tensor of a committed checkpoint.
std::string modelBytes(const std::string& path, const std::string& name, Env& env) {
  const StoredTensors stored = openModel(path, readManifest(path, env).take(), env).take();
  const StoredTensors::Tensor& tensor = stored.tensors().at(name);
  std::string bytes(static_cast<size_t>(elementCount(tensor.shape) * byteSize(tensor.dtype)), '\0');
  EXPECT_EQ(messageOf(tensor.readInto(std::span<char>(bytes))), "");
  return bytes;
}

/// An F32 tensor 'w' [900, 700] behind three bytes of 'pad', so that blocks cut its elements.
std::string writeUnaligned(Env& env, const Tensor& tensor) {
  std::vector<SafetensorsEntry> entries(2);
  entries[0] = {"pad", DType::U8, {3}, 0, 0, {}};
  entries[1] = {tensor.name, tensor.dtype, tensor.shape, 0, 0, {}};
  const std::string header = formatSafetensorsHeader(entries, {}, false);
  auto file = env.createFile("w.safetensors");
  EXPECT_EQ(messageOf((*file)->append(header + "123" + MeshState::whole(tensor, 1))), "");
  return "w.safetensors";
}

TEST(Ranks, InitConvertsOnAnyMesh) {
  const Tensor stored = {"w", StateKind::Param, DType::F32, {900, 700}, {}};
  for (const DType type : {DType::F64, DType::BF16})
    for (const Mesh& mesh : {Mesh{{"shard", 1}}, Mesh{{"shard", 3}}, Mesh{{"a", 2}, {"b", 2}}}) {
      RankDisk disk;
      const std::string path = writeUnaligned(*disk.files, stored);
      // Rows, columns, or all on each rank.
      Placement placement = {{0, 1}};
      if (mesh.size() == 2)
        placement = {{0, 0}, {1, 1}};
      for (const std::string& error : onRanks(rankCount(mesh), [&](Peers& peers) -> std::string {
             MeshState state({{"w", StateKind::Param, type, {900, 700}, placement}}, mesh,
                             peers.rank());
             InitRequest request = state.initRequest(&peers);
             request.ignored = {"pad"};
             request.cast = type == DType::BF16;
             const auto loaded = loadWeights(path, request, disk.of(peers));
             if (!loaded.ok())
               return loaded.error().message();
             auto store = CheckpointStore::open(runDirectory, peers, disk.of(peers));
             return store->save(state.saveRequest(1), 0).ok() ? "" : "not saved";
           }))
        EXPECT_EQ(error, "");
      const std::string whole = MeshState::whole(stored, 1);
      std::string expected(whole.size() / 4 * static_cast<size_t>(byteSize(type)), '\0');
      ASSERT_EQ(messageOf(convertElements(DType::F32, whole, type, expected)), "");
      EXPECT_TRUE(modelBytes(stepPath(1), "w", *disk.files) == expected) << name(type);
    }
}

TEST(Ranks, InitNamesTheTensorThatDoesNotRound) {
  RankDisk disk;
  const Mesh mesh = {{"shard", 2}};
  std::vector<SafetensorsEntry> entries = {{"w", DType::F32, {2}, 0, 0, {}}};
  const std::string header = formatSafetensorsHeader(entries, {}, false);
  const float values[] = {1.0f, 1e30f};
  auto file = disk.files->createFile("w.safetensors");
  ASSERT_TRUE((*file)->append(header + std::string(reinterpret_cast<const char*>(values), 8)).ok());
  for (const std::string& error : onRanks(2, [&](Peers& peers) {
         MeshState state({{"w", StateKind::Param, DType::F16, {2}, {{0, 0}}}}, mesh, peers.rank());
         InitRequest request = state.initRequest(&peers);
         request.cast = true;
         return loadWeights("w.safetensors", request, disk.of(peers)).error().message();
       }))
    EXPECT_EQ(error, "rank 1: 'w': element 0 is 1e+30, which is too large for F16");
}

TEST(Ranks, PreflightLeavesNothing) {
  RankDisk disk;
  const Mesh mesh = {{"replicate", 2}, {"shard", 2}};
  const std::vector<Tensor> tensors = {
      {"w", StateKind::Param, DType::F32, {8, 3}, {{1, 0}, {0, 1}}}};
  for (const std::string& error : onRanks(4, [&](Peers& peers) {
         MeshState state(tensors, mesh, peers.rank());
         auto store = CheckpointStore::open(runDirectory, peers, disk.of(peers));
         return messageOf(store->preflight(state.saveRequest(0), 2));
       }))
    EXPECT_EQ(error, "");
  EXPECT_TRUE(disk.files->readDirectory(checkpointsPath(runDirectory))->empty());
  for (const auto& [rank, env] : disk.ranks)
    EXPECT_FALSE(env->bytesWritten().empty()) << "rank " << rank << " wrote no probe";
}

TEST(Ranks, PreflightNamesTheRankWhoseDiskFails) {
  const Mesh mesh = {{"shard", 3}};
  const std::vector<Tensor> tensors = {{"w", StateKind::Param, DType::F32, {9}, {{0, 0}}}};
  bool met = true;
  int64_t operation = 0;
  for (; met; ++operation) {
    RankDisk disk;
    met = false;
    for (const std::string& error : onRanks(3, [&](Peers& peers) {
           FaultEnv env(disk.of(peers));
           MeshState state(tensors, mesh, peers.rank());
           auto store = CheckpointStore::open(runDirectory, peers, env);
           if (peers.rank() == 2)
             env.failAt(operation, EROFS, /*forGood=*/false);
           const auto passed = store->preflight(state.saveRequest(0), 2);
           EXPECT_TRUE(passed.ok() || passed.error().exitCode() == 3);
           return messageOf(passed);
         })) {
      met = met || !error.empty();
      EXPECT_TRUE(error.empty() || error.starts_with("checkpoints cannot be saved: rank 2: "))
          << error;
    }
    EXPECT_TRUE(disk.files->readDirectory(checkpointsPath(runDirectory))->empty());
  }
  EXPECT_GT(operation, 8);
}

} // namespace
} // namespace titan::checkpoint
