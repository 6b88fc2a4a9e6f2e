#include "compiler/Lower/TileGrid.h"

#include "compiler/Support/MachineModel.h"

#include <gtest/gtest.h>

namespace titan::lower {
namespace {

// The products of the example networks: two threads both have work, and no tile is a sliver.
TEST(TileGrid, GivesWorkToEveryThread) {
  struct Shape {
    int64_t m, n, k;
  };
  for (Shape s : {Shape{64, 128, 784},
                  {128, 784, 64},
                  {64, 784, 128},
                  {256, 3072, 768},
                  {256, 50304, 768},
                  {2048, 2048, 2048}}) {
    MachineModel machine;
    TileGrid grid = chooseTileGrid(machine, 1, s.m, s.n, s.k, 4);
    int64_t tiles = ((s.m + grid.tileM - 1) / grid.tileM) * ((s.n + grid.tileN - 1) / grid.tileN);
    EXPECT_GE(tiles, 2) << s.m << "x" << s.n << "x" << s.k;
    EXPECT_NE(s.m % grid.tileM, 1);
    EXPECT_NE(s.n % grid.tileN, 1);
  }
}

TEST(TileGrid, TinyProductsAreOneTile) {
  TileGrid grid = chooseTileGrid(MachineModel(), 1, 4, 10, 8, 4);
  EXPECT_EQ(grid.tileM, 4);
  EXPECT_EQ(grid.tileN, 10);
}

} // namespace
} // namespace titan::lower
