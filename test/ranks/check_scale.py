#!/usr/bin/env python3
"""Jobs for many ranks: nothing in a job grows with their number, and what a rank holds and sends follows closed forms.

    check_scale.py --tools build/dev/bin [unittest's options]
"""
import json
import math
import re

import numpy as np

import ranks_test
from ledger_forms import Exchange, padded_elements, payload_of, step_payload
from ranks_test import EXAMPLES, plan_of, titan_job

RANKS = (2, 16, 1024)
WIDTH = 4096
WIDE = f"nn:mlp?inputs={WIDTH},width={WIDTH},outputs={WIDTH}"  # 1,024 ranks divide its every dimension
LLAMA_8B = "nn:llama?layers=32,width=4096,heads=32,groups=8,hidden=14336,vocab=128256,tied=false"
RECIPE = f"""[optimizer]
kind = "adamw"
clip_norm = 1.0
[batch]
micro = 1
global = {2 * RANKS[-1]}
[data]
train = "data.npz"
[train]
steps = 1
"""


class Scale(ranks_test.RanksTest):
    def options(self, ranks):
        return ["--set", "mesh.strategy=fsdp", "--set", f"mesh.axes={{ shard = {ranks} }}"]

    def wide(self, ranks):
        recipe = self.shared / "wide.toml"
        recipe.write_text(RECIPE)
        return recipe, self.compile(f"wide-{ranks}", WIDE, recipe, {}, *self.options(ranks))

    def gpt2(self, ranks):
        return self.compile(f"gpt2-{ranks}", EXAMPLES / "gpt2/gpt2.onnx", EXAMPLES / "gpt2/train.toml", {}, "--set", "batch.micro=1", "--set",
                            f"batch.global={RANKS[-1]}", *self.options(ranks))

    def shapes(self, job):
        return {p["name"]: p["shape"] for p in json.loads(titan_job.run([job, "info", "--json"]))["parameters"]}

    def check_forms(self, job, ranks, microbatches, tables=(), tied=()):
        shapes, plan = self.shapes(job), plan_of(job)
        every = {"replicate": microbatches, "shard": microbatches}
        exchange = Exchange("fsdp", 1, ranks, microbatches, every, tables=tables, tied=tied)
        self.assertEqual(payload_of(plan["communication"]), step_payload(exchange, shapes))
        # AdamW has two slots of each parameter, or of the part that a rank has of it.
        held = [(padded_elements(shape, ranks) or math.prod(shape) * ranks) // ranks * 4 for shape in shapes.values()]
        state = plan["memory"]["state"]
        self.assertEqual(state["param"], sum(held))
        self.assertEqual(state["slot"], 2 * state["param"])

    def test_the_program_is_the_same_for_any_number_of_ranks(self):
        programs, sizes = {}, {}
        for ranks in RANKS:
            recipe, job = self.wide(ranks)
            sizes[ranks] = job.stat().st_size
            self.check_forms(job, ranks, 2 * RANKS[-1] // ranks)
            text = titan_job.run([self.tools / "titan-compile", WIDE, "--recipe", recipe, *self.options(ranks), "--emit=codegen"])
            programs[ranks] = re.sub(r"\d+", "N", text)
            self.assertAlmostEqual(sizes[ranks], sizes[RANKS[0]], delta=1e-3 * sizes[RANKS[0]])
        # On 1,024 ranks a bias has four elements: its norm is another kernel. So are kernels of small tensors on one rank.
        self.assertEqual(programs[2], programs[16])

    def test_one_of_many_ranks_runs_alone(self):
        job = self.wide(RANKS[-1])[1]
        data = self.scratch / "data.npz"
        np.savez(data, x=np.ones((2 * RANKS[-1], WIDTH), np.float32), targets=np.zeros(2 * RANKS[-1], np.int64))
        out = titan_job.run([job, "profile", "--rank", RANKS[-1] - 1, "--data", data, "--steps", 1, "--json", "--trace", self.scratch / "trace"])
        profile = json.loads(out)
        self.assertEqual((profile["rank"], profile["peers"]), (RANKS[-1] - 1, "no peers"))
        self.assertEqual(payload_of(profile["communication"]), payload_of(plan_of(job)["communication"]))
        self.assertEqual({row["moved_all"] for row in profile["communication"]}, {0})

    def test_a_language_model(self):
        sizes = {}
        for ranks in RANKS:
            job = self.gpt2(ranks)
            sizes[ranks] = job.stat().st_size
            with self.subTest(ranks=ranks):
                self.check_forms(job, ranks, RANKS[-1] // ranks, tables=("tokens.weight", "positions.weight"))
                self.assertAlmostEqual(sizes[ranks], sizes[RANKS[0]], delta=0.1 * sizes[RANKS[0]])

    def test_eight_billion_parameters(self):
        """More than this machine holds: what a rank holds and sends is planned."""
        recipe = self.shared / "llama.toml"
        recipe.write_text(RECIPE.replace("data.npz", "tokens.npz"))
        ranks = RANKS[-1]
        job = self.compile("llama-8b", LLAMA_8B, recipe, {}, "--set", "model.dims.seq=2048", *self.options(ranks))
        self.assertEqual(sum(map(math.prod, self.shapes(job).values())), 8_030_261_248)  # of Llama 3 8B
        self.check_forms(job, ranks, 2, tables=("model.embed_tokens.weight",))
        self.assertLess(job.stat().st_size, 16 << 20)


if __name__ == "__main__":
    ranks_test.main(__doc__)
