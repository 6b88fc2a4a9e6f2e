#include "runtime/data/Loader.h"

#include "runtime/program/Permutation.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <set>

namespace titan {
namespace {

/// Sample i is the number i; counts reads; fails at one sample.
class CountingDataset : public Dataset {
public:
  explicit CountingDataset(int64_t size, int64_t failing = -1)
      : Dataset({{"x", DType::I64, {}}, {"y", DType::I64, {2}}}), size_(size), failing_(failing) {}
  int64_t size() const override { return size_; }
  uint64_t digest() const override { return 0; }
  Status read(int64_t sample, size_t field, char* destination) const override {
    ++reads;
    if (sample == failing_)
      return Error::badInput("sample {} is bad", sample);
    for (int64_t i = 0; i < sampleBytes(field) / 8; ++i)
      std::memcpy(destination + 8 * i, &sample, 8);
    return {};
  }
  mutable std::atomic<int64_t> reads = 0;

private:
  int64_t size_, failing_;
};

struct Batch {
  explicit Batch(size_t rows) : x(rows, -1), y(2 * rows, -1) {}
  std::vector<int64_t> x, y;
  std::vector<char*> addresses = {reinterpret_cast<char*>(x.data()),
                                  reinterpret_cast<char*>(y.data())};
  std::vector<ByteSink> sinks = {std::span(addresses[0], 8 * x.size()),
                                 std::span(addresses[1], 8 * y.size())};
};

/// A loader with the memory that its slots lie in.
struct Prefetch {
  Prefetch(const Dataset& dataset, LoaderOptions options, uint64_t position, int64_t depth = 4)
      : memory(static_cast<size_t>(depth * BatchSlot::bytesFor(dataset, options.rows()))),
        loader(dataset, options, position, memory) {}
  std::vector<char> memory;
  PrefetchLoader loader;
};

TEST(DirectLoader, GivesTheBatchesInOrderOnAnyNumberOfThreads) {
  const CountingDataset dataset(10000);
  // Rows of 24 bytes: several threads get some.
  const LoaderOptions options{.micro = 3000, .seed = 3};
  const BatchLoader expected(dataset, options);
  for (int threads : {1, 2, 3}) {
    auto pool = ThreadPool::create(threads).take();
    DirectLoader loader(dataset, options, 8000, *pool);
    for (uint64_t position = 8000; position < 20000; position += 3000) { // across an epoch's end
      EXPECT_EQ(loader.position(), position);
      Batch batch(3000), wanted(3000);
      ASSERT_TRUE(loader.next(batch.sinks).ok());
      ASSERT_TRUE(expected.fill(position, wanted.addresses).ok());
      EXPECT_EQ(batch.x, wanted.x);
      EXPECT_EQ(batch.y, wanted.y);
    }
  }
}

TEST(DirectLoader, NamesTheFirstBadSampleOfTheBatchAgainAndAgain) {
  // Every sample from 7 on is bad, in the shares of all threads.
  class Bad final : public CountingDataset {
  public:
    Bad() : CountingDataset(6000) {}
    Status read(int64_t sample, size_t, char*) const override {
      return sample >= 7 ? Status(Error::badInput("sample {} is bad", sample)) : Status();
    }
  };
  const Bad dataset;
  auto pool = ThreadPool::create(3).take();
  DirectLoader loader(dataset, {.micro = 3000, .shuffle = false}, 0, *pool);
  Batch batch(3000);
  for (int time = 0; time < 20; ++time) {
    const Status status = loader.next(batch.sinks);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message(), "sample 7 is bad");
    EXPECT_EQ(loader.position(), 0u);
  }
}

TEST(DirectLoader, SuitsSmallDataThatTheHostCanReach) {
  Batch batch(1);
  const int64_t most = DirectLoader::mostBytes / 24; // a sample has an x and two y
  EXPECT_TRUE(DirectLoader::suits(CountingDataset(most), batch.sinks));
  EXPECT_FALSE(DirectLoader::suits(CountingDataset(most + 1), batch.sinks));
  EXPECT_FALSE(DirectLoader::suits(CountingDataset(10), std::vector<ByteSink>(2)));
}

TEST(BatchLoader, FollowsThePermutation) {
  const CountingDataset dataset(10);
  const BatchLoader loader(dataset, {.micro = 4, .seed = 3});
  Batch batch(4);
  ASSERT_TRUE(loader.fill(8, batch.addresses).ok()); // across the end of the epoch
  for (uint64_t row = 0; row < 4; ++row) {
    EXPECT_EQ(batch.x[row], static_cast<int64_t>(sampleAt(8 + row, 10, 3, true)));
    EXPECT_EQ(batch.y[2 * row + 1], batch.x[row]);
  }
}

TEST(BatchLoader, AnEpochHasEverySampleOnce) {
  const CountingDataset dataset(12);
  const BatchLoader loader(dataset, {.micro = 4, .seed = 1});
  std::set<int64_t> seen;
  for (uint64_t position = 12; position < 24; position += 4) {
    Batch batch(4);
    ASSERT_TRUE(loader.fill(position, batch.addresses).ok());
    seen.insert(batch.x.begin(), batch.x.end());
  }
  EXPECT_EQ(seen.size(), 12u);
}

TEST(BatchLoader, SequentialPadsTheLastBatch) {
  const CountingDataset dataset(6);
  const BatchLoader loader(dataset, {.micro = 4});
  Batch batch(4);
  EXPECT_EQ(loader.fillSequential(0, batch.addresses).take(), 4);
  EXPECT_EQ(batch.x, (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(loader.fillSequential(4, batch.addresses).take(), 2);
  EXPECT_EQ(batch.x, (std::vector<int64_t>{4, 5, 0, 0}));
  EXPECT_EQ(batch.y, (std::vector<int64_t>{4, 4, 5, 5, 0, 0, 0, 0}));
  EXPECT_EQ(loader.fillSequential(8, batch.addresses).take(), 0);
}

TEST(LoaderOptions, SlotsAreMicrobatchesOfTheStep) {
  const CountingDataset dataset(100);
  // Rank 1 of 3: microbatches 1, 4 of six.
  const LoaderOptions options{
      .micro = 2, .microbatches = 2, .first = 1, .stride = 3, .globalBatch = 12, .shuffle = false};
  EXPECT_EQ(options.rows(), 4);
  EXPECT_EQ(options.advance(), 12);
  Batch batch(4);
  ASSERT_TRUE(BatchLoader(dataset, options).fill(24, batch.addresses).ok());
  EXPECT_EQ(batch.x, (std::vector<int64_t>{26, 27, 32, 33}));
}

/// Loaders of all ranks of a mesh, at one position of the run.
struct Mesh {
  enum class Kind { Direct, Prefetch };
  Mesh(const Dataset& dataset, int64_t ranks, bool interleaved, Kind kind, uint64_t position)
      : rows(24 / ranks) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const LoaderOptions options{.microbatches = rows,
                                  .first = interleaved ? rank : rank * rows,
                                  .stride = interleaved ? ranks : 1,
                                  .globalBatch = 24,
                                  .shuffle = false};
      if (kind == Kind::Direct) {
        streams.push_back(std::make_unique<DirectLoader>(dataset, options, position, *pool));
      } else {
        memory.emplace_back(static_cast<size_t>(4 * BatchSlot::bytesFor(dataset, rows)));
        streams.push_back(
            std::make_unique<PrefetchLoader>(dataset, options, position, memory.back()));
      }
    }
  }
  /// The samples of the next step, of all ranks.
  std::multiset<int64_t> step() {
    std::multiset<int64_t> seen;
    for (const auto& stream : streams) {
      Batch batch(static_cast<size_t>(rows));
      EXPECT_TRUE(stream->next(batch.sinks).ok());
      seen.insert(batch.x.begin(), batch.x.end());
    }
    return seen;
  }
  int64_t rows;
  std::unique_ptr<ThreadPool> pool = ThreadPool::create(1).take();
  std::vector<std::vector<char>> memory;
  std::vector<std::unique_ptr<BatchStream>> streams;
};

TEST(BatchStream, EachPositionIsReadOnceOnAnyMeshAfterAnyKill) {
  const CountingDataset dataset(100000); // a sample is its position
  for (auto kind : {Mesh::Kind::Direct, Mesh::Kind::Prefetch})
    for (bool interleaved : {true, false}) {
      int64_t position = 0;
      for (int64_t ranks : {1, 4, 2, 8, 3}) {
        Mesh mesh(dataset, ranks, interleaved, kind, static_cast<uint64_t>(position));
        for (int steps = 0; steps < 5; ++steps, position += 24) {
          std::multiset<int64_t> expected;
          for (int64_t i = 0; i < 24; ++i)
            expected.insert(position + i);
          ASSERT_EQ(mesh.step(), expected) << ranks << " ranks at " << position;
          for (const auto& stream : mesh.streams)
            ASSERT_EQ(stream->position(), static_cast<uint64_t>(position + 24));
        }
        mesh.step(); // killed before this step's end: it counts for nothing
      }
    }
}

TEST(PrefetchLoader, KeepsMoreOfSmallBatches) {
  EXPECT_EQ(PrefetchLoader::depthFor(0), 16);
  EXPECT_EQ(PrefetchLoader::depthFor(200 << 10), 16);
  EXPECT_EQ(PrefetchLoader::depthFor(512 << 10), 8);
  EXPECT_EQ(PrefetchLoader::depthFor(1 << 20), 4);
  EXPECT_EQ(PrefetchLoader::depthFor(int64_t{1} << 40), 4);
}

TEST(PrefetchLoader, SameBatchesFromAnyPosition) {
  const CountingDataset dataset(1000);
  const LoaderOptions options{.micro = 8, .seed = 5};
  const BatchLoader reference(dataset, options);
  for (int depth : {1, 2, 4})
    for (uint64_t start : {0, 8, 803}) {
      Prefetch prefetch(dataset, options, start, depth);
      PrefetchLoader& loader = prefetch.loader;
      for (uint64_t step = 0; step < 300; ++step) {
        EXPECT_EQ(loader.position(), start + 8 * step);
        Batch batch(8), expected(8);
        ASSERT_TRUE(loader.next(batch.sinks).ok());
        ASSERT_TRUE(reference.fill(start + 8 * step, expected.addresses).ok());
        ASSERT_EQ(batch.x, expected.x);
        ASSERT_EQ(batch.y, expected.y);
      }
    }
}

TEST(PrefetchLoader, ErrorsComeOutAtTheirBatch) {
  const CountingDataset dataset(100, 21);
  Prefetch prefetch(dataset, {.micro = 10, .shuffle = false}, 0);
  PrefetchLoader& loader = prefetch.loader;
  Batch batch(10);
  EXPECT_TRUE(loader.next(batch.sinks).ok());
  EXPECT_TRUE(loader.next(batch.sinks).ok());
  for (int again = 0; again < 2; ++again) {
    const Status status = loader.next(batch.sinks);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message(), "sample 21 is bad");
  }
  EXPECT_EQ(loader.position(), 20u);
}

TEST(PrefetchLoader, StopsWithBatchesLeft) {
  const CountingDataset dataset(100);
  for (int i = 0; i < 200; ++i) {
    Prefetch prefetch(dataset, {.micro = 10}, 0);
    PrefetchLoader& loader = prefetch.loader;
    if (i % 2) {
      Batch batch(10);
      EXPECT_TRUE(loader.next(batch.sinks).ok());
    }
  }
}

TEST(PrefetchLoader, ReadsNoFurtherThanItsDepth) {
  const CountingDataset dataset(1000);
  Prefetch prefetch(dataset, {.micro = 10}, 0, 3);
  PrefetchLoader& loader = prefetch.loader;
  Batch batch(10);
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(loader.next(batch.sinks).ok());
  EXPECT_LE(dataset.reads, (5 + 3) * 10 * 2);
}

} // namespace
} // namespace titan
