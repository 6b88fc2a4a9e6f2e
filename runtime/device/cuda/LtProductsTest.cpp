// Which products the library computes, by which algorithms: on the linear program, whose products
// are gradients of weights and a product with a bias.
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/testing/FakeCard.h"
#include "runtime/device/cuda/testing/FakeLt.h"
#include "runtime/device/cuda/testing/LinearPtx.h"
#include "runtime/device/testing/LinearRun.h"
#include "runtime/program/CardProducts.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

namespace titan::cuda {
namespace {

using titan::testing::FakeLtVariable;
using titan::testing::FakeVariable;
using titan::testing::LinearRun;
using titan::testing::Variable;
using titan::testing::WithoutLt;
using Mode = ProductRequest::Mode;

/// The linear program, whose products share a workspace.
Program programWithWorkspace() {
  return titan::testing::withWorkspace(titan::testing::linearCudaProgram());
}

/// The algorithms that ran while this lives.
class Runs {
public:
  Runs() : variable_("RECORD", path_) { std::filesystem::remove(path_); }
  ~Runs() { std::filesystem::remove(path_); }

  /// How often each one ran behind the `skipped`-th run of them all.
  std::map<int, int> algorithms(size_t skipped = 0) const {
    std::map<int, int> counts;
    const std::regex pattern("# cublasLtMatmul algorithm ([0-9]+) ran");
    std::ifstream file(path_);
    std::smatch match;
    for (std::string line; std::getline(file, line);)
      if (std::regex_match(line, match, pattern) && (skipped == 0 || skipped-- == 0))
        ++counts[std::stoi(match[1])];
    return counts;
  }
  size_t count() const {
    size_t all = 0;
    for (const auto& [number, count] : algorithms())
      all += static_cast<size_t>(count);
    return all;
  }

private:
  std::string path_ = fmt::format("{}/fake-lt-record-{}",
                                  std::filesystem::temp_directory_path().string(), getpid());
  FakeVariable variable_;
};

/// The linear program trains on the fake card.
struct LtRun : LinearRun {
  explicit LtRun(ProductRequest request = {.mode = Mode::IfThere},
                 Program table = programWithWorkspace())
      : LinearRun(
            1,
            [&](const Program& program, auto&&...) -> Result<std::unique_ptr<Device>> {
              auto made =
                  CudaDevice::create(program, titan::testing::linearCudaPayload(), 0, request);
              if (!made.ok())
                return made.takeError();
              return std::unique_ptr<Device>(made.take());
            },
            std::move(table)) {}

  const LtProducts& products() const { return static_cast<CudaDevice&>(*device).products(); }
  std::set<std::string> algorithms() const {
    std::set<std::string> all;
    for (const auto& [product, algorithm] : products().choices().algorithms)
      all.insert(algorithm);
    return all;
  }
};

std::string stateAfter(const ProductRequest& request, int64_t steps = 3) {
  LtRun run(request);
  run.train(steps);
  return run.stateBytes();
}

TEST(LtProducts, ComputesWhatTheJobsKernelsDo) {
  std::vector<float> expected;
  {
    LtRun own({.mode = Mode::Generated});
    EXPECT_FALSE(own.products().isOpen());
    expected = own.train(5);
  }
  const Runs runs;
  LtRun library;
  EXPECT_EQ(library.products().choices().library, "cublaslt");
  EXPECT_EQ(library.products().choices().version, "13.1.0");
  EXPECT_EQ(library.products().choices().device, "Titan fake card, sm_120");
  EXPECT_EQ(library.products().choices().algorithms.size(), 2u);
  EXPECT_EQ(library.products().notes(), std::vector<std::string>());
  const size_t before = runs.count();
  EXPECT_EQ(before, 2 * (2 + 8u)) << "two runs, and eight of small results of integers";
  const std::vector<float> losses = library.train(5);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(losses[i], expected[i], 1e-5 * expected[i]);
  constexpr int microbatches = titan::testing::LinearShape::microbatches;
  EXPECT_EQ(runs.algorithms(before), (std::map<int, int>{{0, 5 * 2 * microbatches}}));
}

TEST(LtProducts, WalksAndGraphsHaveTheSameBits) {
  struct Observer : CommandObserver {
  } observer;
  LtRun graphs, walks;
  walks.observer = &observer;
  EXPECT_EQ(graphs.train(6), walks.train(6));
  EXPECT_EQ(graphs.stateBytes(), walks.stateBytes());
  const FakeVariable seed("SEED", "5"), order("ORDER", "random");
  EXPECT_EQ(stateAfter({.mode = Mode::IfThere}, 6), graphs.stateBytes());
}

TEST(LtProducts, ASplitArenaHasTheSameBits) {
  const std::string whole = stateAfter({.mode = Mode::IfThere});
  const Variable split("TITAN_CUDA_SPLIT_ARENA", "1");
  EXPECT_EQ(stateAfter({.mode = Mode::IfThere}), whole);
}

TEST(LtProducts, TakesTheNextAlgorithmWhereOneMisbehaves) {
  const std::string first = *LtRun().algorithms().begin();
  for (const char* how : {"REFUSE", "MISROUND", "COARSE", "VARY", "GREEDY", "CARELESS"}) {
    const FakeLtVariable misbehaves(how, "0");
    const Runs runs;
    LtRun run;
    const size_t before = runs.count();
    run.train(2);
    const std::map<int, int> ran = runs.algorithms(before);
    ASSERT_EQ(ran.size(), 1u) << how;
    EXPECT_EQ(ran.begin()->first, 1) << how;
    EXPECT_EQ(run.products().notes(), std::vector<std::string>()) << how;
  }
}

TEST(LtProducts, GeneratesWhatNoAlgorithmIsAdmittedFor) {
  const std::string own = stateAfter({.mode = Mode::Generated});
  const std::pair<const char*, const char*> ways[] = {
      {"REFUSE", "refuses: CUBLAS_STATUS_NOT_SUPPORTED"},
      {"MISROUND", "rounds otherwise than the generated product"},
      {"COARSE", "rounds otherwise than the generated product"},
      {"VARY", "gives other bits in a second run"},
      {"GREEDY", "needs 4097 bytes of workspace, and 4096 are planned"},
      {"CARELESS", "gives other bits in a second run"}};
  for (const auto& [how, why] : ways) {
    const FakeLtVariable misbehaves(how, "all");
    LtRun run({.mode = Mode::Library});
    EXPECT_EQ(run.products().notes(),
              (std::vector<std::string>{
                  fmt::format("2 of 2 products are generated, since cublaslt 13.1.0 does not "
                              "compute them: 'forward product of linear': {}",
                              why)}));
    run.train(3);
    EXPECT_EQ(run.stateBytes(), own) << how;
    EXPECT_EQ(run.algorithms(), std::set<std::string>{LibraryChoices::generated});
  }
  const FakeLtVariable none("NONE", "1");
  EXPECT_NE(LtRun().products().notes().at(0).find("it knows no algorithm"), std::string::npos);
}

TEST(LtProducts, WithoutWorkspaceTakesWhatNeedsNone) {
  const FakeLtVariable misbehaves("MISROUND", "1,2,3");
  LtRun run({.mode = Mode::Library}, titan::testing::linearCudaProgram());
  EXPECT_EQ(run.products().notes(), std::vector<std::string>());
  const FakeLtVariable refuses("REFUSE", "0");
  LtRun other({.mode = Mode::Library}, titan::testing::linearCudaProgram());
  EXPECT_EQ(other.algorithms(), std::set<std::string>{LibraryChoices::generated});
}

TEST(LtProducts, AMissingLibraryIsANoteUnlessItWasNamed) {
  const std::string own = stateAfter({.mode = Mode::Generated});
  const auto check = [&](const char* part) {
    LtRun run({.mode = Mode::IfThere});
    ASSERT_EQ(run.products().notes().size(), 1u);
    EXPECT_EQ(run.products().notes()[0].find("products are generated: "), 0u);
    EXPECT_NE(run.products().notes()[0].find(part), std::string::npos) << run.products().notes()[0];
    run.train(3);
    EXPECT_EQ(run.stateBytes(), own);
    for (const Mode mode : {Mode::Library, Mode::Tune}) {
      const auto device = CudaDevice::create(
          programWithWorkspace(), titan::testing::linearCudaPayload(), 0, {.mode = mode});
      ASSERT_FALSE(device.ok());
      EXPECT_EQ(device.error().exitCode(), 3);
      EXPECT_NE(device.error().message().find(part), std::string::npos);
    }
  };
  {
    const WithoutLt none;
    check("cannot load cuBLASLt: ");
  }
  {
    const FakeLtVariable old("VERSION", "12.0.0");
    check("has version 12.0.0");
  }
  const FakeLtVariable start("START", "1");
  check("cuBLASLt 13.1.0 does not work here: cublasLtCreate: CUBLAS_STATUS_NOT_INITIALIZED; the "
        "driver is for CUDA 13.0");
}

/// What a run chooses whose library knows algorithm 2 alone.
LibraryChoices choicesOfTwo() {
  const FakeLtVariable others("MISROUND", "0,1,3");
  return LtRun().products().choices();
}

TEST(LtProducts, TakesTheSavedAlgorithms) {
  const LibraryChoices saved = choicesOfTwo();
  const Runs runs;
  LtRun run({.mode = Mode::IfThere, .saved = &saved});
  EXPECT_EQ(runs.count(), 0u) << "they were admitted once";
  EXPECT_EQ(run.products().choices(), saved);
  run.train(2);
  EXPECT_EQ(runs.algorithms().begin()->first, 2);
  EXPECT_EQ(runs.algorithms().size(), 1u);

  LibraryChoices tuned = LtRun().products().choices();
  EXPECT_NE(tuned, saved);
  EXPECT_EQ(LtRun({.mode = Mode::IfThere, .saved = &saved, .tuned = &tuned}).products().choices(),
            saved);
  EXPECT_EQ(LtRun({.mode = Mode::IfThere, .tuned = &saved}).products().choices(), saved);

  for (auto& [product, algorithm] : tuned.algorithms)
    algorithm = LibraryChoices::generated;
  EXPECT_EQ(LtRun({.mode = Mode::IfThere, .saved = &tuned}).algorithms(),
            std::set<std::string>{LibraryChoices::generated});
}

TEST(LtProducts, ChoosesAnewElsewhere) {
  const LibraryChoices saved = choicesOfTwo();
  LibraryChoices other = saved;
  other.device = "NVIDIA H100 80GB HBM3, sm_90";
  LtRun run({.mode = Mode::IfThere, .saved = &other, .savedStep = 40});
  EXPECT_EQ(run.products().notes(),
            (std::vector<std::string>{
                "the run's products were chosen for cublaslt 13.1.0 on NVIDIA H100 80GB HBM3, "
                "sm_90, and here is cublaslt 13.1.0 on Titan fake card, sm_120: they are chosen "
                "anew, and the bits may differ from step 41 on"}));
  EXPECT_NE(run.products().choices().algorithms, saved.algorithms);
  LtRun tuned({.mode = Mode::IfThere, .tuned = &other});
  ASSERT_EQ(tuned.products().notes().size(), 1u);
  EXPECT_EQ(tuned.products().notes()[0].find("the tuning file is for cublaslt 13.1.0 on NVIDIA"),
            0u);
}

TEST(LtProducts, ReplacesASavedAlgorithmThatTheLibraryDoesNotTake) {
  LibraryChoices saved = choicesOfTwo();
  for (auto& [product, algorithm] : saved.algorithms)
    algorithm[0] = '9';
  LtRun run({.mode = Mode::IfThere, .saved = &saved});
  ASSERT_EQ(run.products().notes().size(), 2u);
  EXPECT_EQ(run.products().notes()[0],
            "cublaslt 13.1.0 does not take the saved algorithm of 'forward product of linear': "
            "another one is chosen, and the bits may differ");
  EXPECT_EQ(run.algorithms().size(), 2u);
  EXPECT_FALSE(run.algorithms().contains(LibraryChoices::generated));
}

TEST(LtProducts, ReadsF32AsTf32WhereThatIsAllowed) {
  const auto request = [](F32Products f32) {
    return ProductRequest{.mode = Mode::Library, .f32 = f32};
  };
  LtRun whole(request(F32Products::Whole)), coarse(request(F32Products::MayUseTf32));
  EXPECT_EQ(coarse.products().notes(), std::vector<std::string>());
  EXPECT_EQ(coarse.algorithms().count(LibraryChoices::generated), 0u);
  for (const auto& [product, algorithm] : coarse.products().choices().algorithms) {
    EXPECT_NE(product.find(" F32 F32 F32 tf32"), product.npos) << product;
    EXPECT_EQ(whole.products().choices().algorithms.count(product), 0u);
  }
  const std::vector<float> expected = whole.train(5), losses = coarse.train(5);
  EXPECT_NE(losses, expected);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(losses[i], expected[i], 1e-2 * expected[i]);

  // Where it rounds sums otherwise, it is still found out.
  const FakeLtVariable misrounds("MISROUND", "all");
  EXPECT_EQ(LtRun(request(F32Products::MayUseTf32)).algorithms(),
            std::set<std::string>{LibraryChoices::generated});
}

TEST(LtProducts, TunesByTime) {
  LtRun run({.mode = Mode::Tune});
  ASSERT_EQ(run.products().tuned().size(), 2u);
  for (const TunedProduct& product : run.products().tuned()) {
    EXPECT_EQ(product.admitted, 4u);
    EXPECT_LT(product.fastest, 4u);
    EXPECT_LE(product.bestSeconds, product.firstSeconds);
    EXPECT_GT(product.bestSeconds, 0);
  }
  const FakeLtVariable misbehaves("VARY", "0,1");
  EXPECT_EQ(LtRun({.mode = Mode::Tune}).products().tuned()[0].admitted, 2u);
}

TEST(LtProducts, OffersNoReluToTheLibrary) {
  Program program = programWithWorkspace();
  for (LibraryCall& call : program.libraryCalls)
    call.gemm.relu = true;
  const WithoutLt none;
  LtRun run({.mode = Mode::Library}, program);
  EXPECT_FALSE(run.products().isOpen());
  EXPECT_EQ(run.products().notes(), std::vector<std::string>());
}

TEST(LtProduct, AlignmentsAreThoseOfAllCommands) {
  Program program = programWithWorkspace();
  const auto alignments = [&] { return ProductAlignments::of(program, 0); };
  std::vector<Command>& commands = program.functions[0].commands;
  const auto product = std::ranges::find_if(commands, [](const Command& command) {
    return command.kind == CommandKind::Library && command.target == 0;
  });
  product->operands[0].address = {512, {{0, 96}}};
  product->operands[1].address = {1024 + 8, {}};
  ASSERT_TRUE(program.libraryCalls[0].gemm.bias);
  product->operands[3].address = {4, {}};
  EXPECT_EQ(alignments().bias, 4u);
  program.libraryCalls[0].gemm.bias = false;
  EXPECT_EQ(alignments().bias, 256u) << "it has none";
  EXPECT_EQ(alignments().a, 32u);
  EXPECT_EQ(alignments().b, 8u);
  EXPECT_LE(alignments().c, 256u);
}

TEST(LtProduct, AlgorithmsAreText) {
  cublasLtMatmulAlgo_t algorithm = {};
  algorithm.data[0] = 0x0123456789abcdef;
  algorithm.data[7] = 42;
  const std::string hex = hexOf(algorithm);
  EXPECT_EQ(hex.size(), 128u);
  EXPECT_EQ(hex.substr(0, 18), "0123456789abcdef00");
  ASSERT_TRUE(algorithmOf(hex));
  EXPECT_EQ(hexOf(*algorithmOf(hex)), hex);
  EXPECT_FALSE(algorithmOf(hex.substr(1)));
  EXPECT_FALSE(algorithmOf("g" + hex.substr(1)));
}

TEST(BitsDigest, TellsResultsApart) {
  const Driver driver = titan::testing::loadDriver();
  const Card card = chooseCard(driver, 0).take();
  CUcontext context = nullptr;
  ASSERT_EQ(driver.cuDevicePrimaryCtxRetain(&context, card.handle).result, CUDA_SUCCESS);
  const OwnedContext held(driver, card.handle);
  ASSERT_EQ(driver.cuCtxSetCurrent(context).result, CUDA_SUCCESS);
  CUstream stream = nullptr;
  ASSERT_EQ(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING).result, CUDA_SUCCESS);
  const OwnedStream owned(driver, stream);
  const BitsDigest digest = BitsDigest::create(driver).take();
  for (const size_t bytes : {size_t{2}, size_t{66}, size_t{2048}, size_t{300000}}) {
    CUdeviceptr address = 0;
    ASSERT_EQ(driver.cuMemAlloc_v2(&address, bytes).result, CUDA_SUCCESS);
    const OwnedMemory memory(driver, address);
    std::string host(bytes, '\x11');
    const auto digestOf = [&] {
      EXPECT_EQ(driver.cuMemcpyHtoDAsync_v2(address, host.data(), bytes, stream).result,
                CUDA_SUCCESS);
      return digest.of(address, static_cast<int64_t>(bytes), stream).take();
    };
    const std::string before = digestOf();
    EXPECT_EQ(digestOf(), before);
    for (const size_t at : {size_t{0}, bytes / 2, bytes - 1}) {
      host[at] ^= 1;
      EXPECT_NE(digestOf(), before) << at << " of " << bytes;
      host[at] ^= 1;
    }
  }
}

} // namespace
} // namespace titan::cuda
