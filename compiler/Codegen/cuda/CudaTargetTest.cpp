// Architectures, and what a job carries with and without an assembler.
#include "compiler/Codegen/cuda/CudaTarget.h"
#include "compiler/Codegen/cuda/Assembler.h"
#include "compiler/Codegen/cuda/CudaArch.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

namespace titan::codegen {
namespace {

TEST(CudaArch, NamesAreSortedAndChecked) {
  Result<TargetInfo> info = resolveCards("sm_120,sm_80,sm_80");
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->archs, "sm_80,sm_120");
  EXPECT_EQ(info->kind, "cuda");
  EXPECT_EQ(info->machine->arenaAlignment, 256);

  Result<TargetInfo> unknown = resolveCards("sm_80,sm_75");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code(), ErrorCode::Usage);
  EXPECT_EQ(unknown.error().message(),
            "--arch=sm_75: unknown: --target=cuda knows sm_80, sm_86, sm_87, sm_89, sm_90, sm_100, "
            "sm_103, sm_120, sm_121");
}

TEST(CudaTarget, WithoutAnAssemblerItDependsOnWhatWasAsked) {
  Result<std::string> note = withoutAssembler(cuda::defaultArchs);
  ASSERT_TRUE(note.ok());
  EXPECT_TRUE(note->starts_with("the job carries PTX alone, which the driver of a card assembles"));
  Result<std::string> refused = withoutAssembler("sm_90");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::Environment);
  EXPECT_TRUE(
      refused.error().message().starts_with("--arch=sm_90 takes an assembler: no nvJitLink ("));
}

TEST(CudaTarget, AnUnknownCardInAPrintedStageIsRefused) {
  mlir::MLIRContext context;
  TargetInfo info;
  info.kind = "cuda";
  info.archs = "sm_1";
  Result<std::unique_ptr<Target>> target = CudaTarget::create(info, &context);
  ASSERT_FALSE(target.ok());
  EXPECT_EQ(target.error().message(), "'titan.target' names cuda 'sm_1': no such card");
}

constexpr const char* twoPlaces = R"(
func.func @f(%a: memref<2x64xf32> {kernel.offset = 0 : i64},
             %b: memref<64xf32> {kernel.offset = 512 : i64},
             %c: memref<64xf32> {kernel.offset = 772 : i64}, %i: index) {
  %s = kernel.slice %a[%i] : memref<2x64xf32> to memref<64xf32>
  kernel.fused flat [64] ins(%s : memref<64xf32>) outs(%b : memref<64xf32>)
      maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] {
  ^bb0(%x: f32):
    %y = arith.addf %x, %x : f32
    kernel.yield %y : f32
  }
  kernel.fused flat [64] ins(%s : memref<64xf32>) outs(%c : memref<64xf32>)
      maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] {
  ^bb0(%x: f32):
    %y = arith.addf %x, %x : f32
    kernel.yield %y : f32
  }
  return
}
)";

TEST(CudaTarget, AnImageEachArchitectureAndPtx) {
  mlir::DialectRegistry registry;
  registry.insert<kernel::KernelDialect, mlir::func::FuncDialect>();
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(twoPlaces, &context);
  ASSERT_TRUE(module);
  Result<std::unique_ptr<Target>> target =
      CudaTarget::create(*resolveCards(cuda::defaultArchs), &context);
  ASSERT_TRUE(target.ok());
  std::vector<std::string> variants;
  module->walk([&](kernel::FusedOp op) {
    variants.push_back((*target)->variant(op));
    ASSERT_TRUE(mlir::succeeded((*target)->emit(op, fmt::format("k{}", variants.size()))));
  });
  EXPECT_EQ(variants, (std::vector<std::string>{" 16 16", " 16 4"}));
  ASSERT_EQ((*target)->launches("k2").size(), 1);
  EXPECT_EQ((*target)->launches("k2")[0].entry, "k2");
  EXPECT_EQ((*target)->launches("k2")[0].blocks, 1);
  EXPECT_EQ((*target)->launches("k2")[0].threads, 32);

  const bool assembles = cuda::Assembler::find() != nullptr;
  Result<std::vector<CompiledImage>> images = (*target)->finish();
  ASSERT_TRUE(images.ok()) << images.error().message();
  ASSERT_EQ(images->size(), assembles ? 3 : 1);
  EXPECT_EQ(images->back().image.kind, Image::Kind::Ptx);
  EXPECT_EQ(images->back().image.arch, "sm_80");
  EXPECT_NE(images->back().bytes.find(".entry k1("), std::string::npos);
  EXPECT_EQ((*target)->notes().size(), assembles ? 0 : 1);
  for (size_t i = 0; i + 1 < images->size(); ++i) {
    EXPECT_EQ((*images)[i].image.kind, Image::Kind::Cubin);
    EXPECT_EQ((*images)[i].image.arch, i == 0 ? "sm_80" : "sm_90");
    EXPECT_TRUE((*images)[i].bytes.starts_with("\x7f"
                                               "ELF"));
    EXPECT_FALSE((*images)[i].log.empty());
  }
}

} // namespace
} // namespace titan::codegen
