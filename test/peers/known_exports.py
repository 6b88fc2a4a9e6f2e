"""Models that Titan knows by name, of sizes drawn at random, against PyTorch's exports of the same: one raised module. The seed is printed.

    test/peers/run-with-peers test/peers/known_exports.py --tools build/dev/bin [--count 8] [--seed 1]
"""
import argparse
import logging
import random
import sys
import tempfile
from pathlib import Path

import torch

TESTS = Path(__file__).parent.parent
sys.path += [str(TESTS / "training"), str(TESTS / "nn")]
import titan_job
from export_model import export
from raised_graph import canonical, first_difference
from verdict import failed

try:
    import transformers
    from known_models import BasicBlock, Bottleneck, ResNet
    from logits import Logits
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

RECIPE = "[model]\ninit = \"fresh\"\n[batch]\nmicro = 2\nglobal = 2\n"


def draw_gpt(draw):
    # Of a single head the import leaves the dimension of extent 1 in another place.
    heads, dropout = draw.choice([2, 3, 4]), draw.choice([0, 0.1])
    sizes = dict(n_layer=draw.randint(1, 3), n_embd=heads * draw.choice([8, 12]), n_head=heads, vocab_size=draw.randint(20, 90),
                 n_positions=draw.randint(8, 24), n_inner=draw.choice([None, 40]), layer_norm_epsilon=draw.choice([1e-5, 1e-6]),
                 tie_word_embeddings=draw.random() < 0.5)
    # The exporter writes no valid file of its fused attention with dropout.
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        **sizes, resid_pdrop=dropout, embd_pdrop=dropout, attn_pdrop=dropout, bos_token_id=0, eos_token_id=0,
        attn_implementation="eager" if dropout else "sdpa"))
    request = (f"nn:gpt?layers={sizes['n_layer']},width={sizes['n_embd']},heads={heads},vocab={sizes['vocab_size']},"
               f"length={sizes['n_positions']},hidden={sizes['n_inner'] or 0},epsilon={sizes['layer_norm_epsilon']},dropout={dropout},"
               f"tied={str(sizes['tie_word_embeddings']).lower()}")
    return request, Logits(model), torch.zeros(2, sizes["n_positions"], dtype=torch.int64), "input_ids"


def draw_llama(draw):
    groups = draw.choice([1, 2])
    heads = groups * draw.choice([1, 3])
    sizes = dict(num_hidden_layers=draw.randint(1, 3), hidden_size=heads * draw.choice([8, 12]), num_attention_heads=heads,
                 num_key_value_heads=groups, intermediate_size=draw.choice([40, 56]), vocab_size=draw.randint(20, 90),
                 max_position_embeddings=draw.randint(8, 24), rms_norm_eps=draw.choice([1e-5, 1e-6]), rope_theta=draw.choice([1e4, 5e5]),
                 tie_word_embeddings=draw.random() < 0.5)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, attn_implementation="sdpa"))
    request = (f"nn:llama?layers={sizes['num_hidden_layers']},width={sizes['hidden_size']},heads={heads},groups={groups},"
               f"hidden={sizes['intermediate_size']},vocab={sizes['vocab_size']},length={sizes['max_position_embeddings']},"
               f"theta={sizes['rope_theta']},epsilon={sizes['rms_norm_eps']},tied={str(sizes['tie_word_embeddings']).lower()}")
    return request, Logits(model), torch.zeros(2, sizes["max_position_embeddings"], dtype=torch.int64), "input_ids"


def draw_resnet(draw):
    depth, (block, counts) = draw.choice([(18, (BasicBlock, (2, 2, 2, 2))), (34, (BasicBlock, (3, 4, 6, 3))), (50, (Bottleneck, (3, 4, 6, 3)))])
    width, size, classes = draw.choice([4, 6]), draw.choice([40, 64, 75]), draw.randint(2, 9)
    return (f"nn:resnet?depth={depth},width={width},size={size},classes={classes}", ResNet(block, counts, width, classes),
            torch.zeros(2, 3, size, size), "images")


def raised(tools, model, recipe):
    return canonical(titan_job.run([tools / "titan-compile", model, "--recipe", recipe, "--emit=import"]))


def check(tools, folder, request, module, sample, name):
    recipe, path = folder / "recipe.toml", folder / "export.onnx"
    recipe.write_text(RECIPE)
    export(module, (sample,), [name], path, dynamo=True, training=True, dynamic=True, optimize=False, opset_version=23)
    known, exported = raised(tools, request, recipe), raised(tools, path, recipe)
    return [] if known == exported else [f"differ at {first_difference(known, exported)}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", required=True, type=Path, help="folder of titan-compile")
    parser.add_argument("--count", type=int, default=6)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    print(f"seed {arguments.seed}")
    torch.manual_seed(arguments.seed)
    draw, wrong = random.Random(arguments.seed), 0
    for i in range(arguments.count):
        drawn = (draw_gpt, draw_llama, draw_resnet)[i % 3](draw)
        with tempfile.TemporaryDirectory() as folder:
            wrong += failed(drawn[0], check, arguments.tools, Path(folder), *drawn)
    print(f"{arguments.count - wrong} passed, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
