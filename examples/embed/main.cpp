// Builds a language model of bytes, compiles it and starts the job:
//
//   embed TEXT.txt [arguments of the job, --steps 100 for instance]
#include "compiler/Driver/CompileJob.h"
#include "frontend/nn/Layers.h"

#include <cstdio>
#include <unistd.h>
#include <vector>

using namespace titan;

/// Each byte is guessed from the eight before: their rows, side by side, through two layers.
static void guesser(nn::Model& model) {
  const int64_t length = 8, width = 16;
  nn::Scope root = model.root();
  nn::Tensor ids = model.input("ids", DType::I64, {length});
  nn::Tensor x = nn::embedding(root.child("bytes"), ids, 256, width);
  x = nn::reshape(root, x, {x.extent(0), length * width});
  x = nn::geluBlock(root.child("block"), nn::layerNorm(root.child("norm"), x), 128);
  x = nn::linear(root.child("head"), nn::reshape(root, x, {x.extent(0), length, width}), 256);
  model.output("logits", x);
}

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: embed TEXT.txt [arguments of the job]\n");
    return 2;
  }
  Recipe recipe;
  recipe.model.init = "fresh";
  recipe.batch.micro = recipe.batch.global = 32;
  recipe.data.train = {argv[1]};
  if (Status status = compileJob(guesser, recipe, {.name = "guesser"}); !status.ok()) {
    std::fprintf(stderr, "error: %s\n", status.error().message().c_str());
    return status.error().exitCode();
  }
  std::vector<char*> job = {const_cast<char*>("./guesser"), const_cast<char*>("train")};
  job.insert(job.end(), argv + 2, argv + argc);
  job.push_back(nullptr);
  execv(job[0], job.data());
  std::perror("./guesser");
  return 3;
}
