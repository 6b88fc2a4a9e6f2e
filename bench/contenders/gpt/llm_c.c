// llm.c's CPU program as a library: what llm_c.py calls. Compiled with a checkout of llm.c on the include path.
#define TESTING // leaves its main out
#include "train_gpt2.c"

GPT2* load(const char* checkpoint) {
  GPT2* model = malloc(sizeof(GPT2));
  gpt2_build_from_checkpoint(model, checkpoint);
  return model;
}

/// Step `number`, from 1 on, with AdamW. Tokens and targets have `batch` * `length` elements. Returns the loss before the update.
float step(GPT2* model, int* tokens, int* targets, int batch, int length, int number, float learning_rate, float beta_1, float beta_2, float epsilon,
           float weight_decay) {
  gpt2_forward(model, tokens, targets, batch, length);
  gpt2_zero_grad(model);
  gpt2_backward(model);
  gpt2_update(model, learning_rate, beta_1, beta_2, epsilon, weight_decay, number);
  return model->mean_loss;
}
