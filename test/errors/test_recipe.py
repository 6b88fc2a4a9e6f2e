"""Recipes that say something wrong, or something that this model cannot do."""
import unittest

import numpy as np

import onnx_bytes as onnx
from support import COMPILE, MODEL, RECIPE, REFERENCES, USAGE, ErrorTest


class Recipe(ErrorTest):
    def bad(self, text, says, **options):
        """RECIPE with `text` behind it is refused."""
        self.recipe(RECIPE + text)
        return self.compile_refused(says=says, **options)

    def bad_key(self, assignment, says, **options):
        """So is `--set assignment`, and the same as a line of the file."""
        return self.compile_refused("--set", assignment, says=says, **options)

    # The file

    def test_missing(self):
        (self.folder / "recipe.toml").unlink()
        self.compile_refused(says=["recipe.toml", "No such file"])

    def test_folder(self):
        (self.folder / "recipe.toml").unlink()
        (self.folder / "recipe.toml").mkdir()
        self.compile_refused(says="recipe.toml")

    def test_syntax_error(self):
        self.bad("[loss\n", says="recipe.toml:12:6")

    def test_binary(self):
        (self.folder / "recipe.toml").write_bytes(bytes(range(256)))
        self.compile_refused(says="recipe.toml")

    def test_not_utf8(self):
        (self.folder / "recipe.toml").write_bytes(b'[data]\ntrain = "\xff\xfe.npz"\n')
        self.compile_refused(says="recipe.toml")

    def test_deeply_nested(self):
        self.bad("[model]\ndims = " + "[" * 100000 + "\n", says="recipe.toml")

    def test_duplicate_key(self):
        self.bad("[loss]\nkind = 'mse'\nkind = 'l1'\n", says=["recipe.toml", "kind"])

    # Keys

    def test_unknown_key_names_the_nearest(self):
        self.bad("[loss]\nlabel_smothing = 0.1\n", says=["loss.label_smothing", "label_smoothing"])

    def test_unknown_table_names_the_nearest(self):
        self.bad("[optimiser]\nlr = 1\n", says=["optimiser", "optimizer"])

    def test_unknown_key_of_a_group(self):
        self.bad("[[optimizer.group]]\nmatch = '*'\nlr_scal = 2\n", says=["lr_scal", "lr_scale"])

    def test_wrong_types(self):
        for text, key in {"[loss]\nkind = 3\n": "loss.kind", "[loss]\nlabel_smoothing = 'much'\n": "loss.label_smoothing",
                          "[schedule]\nwarmup_steps = 1.5\n": "schedule.warmup_steps", "[mesh]\naxes = 2\n": "mesh.axes",
                          "[model]\nfrozen = 'fc.*'\n[loss]\nignore_index = true\n": "loss.ignore_index",
                          "[model]\ndims = ['a']\n": "model.dims", "[checkpoint]\nkeep = [1]\n": "checkpoint.keep"}.items():
            with self.subTest(text=text):
                self.bad(text, says=["recipe.toml", key])

    def test_values_out_of_range(self):
        for assignment, says in {"optimizer.lr=-1": "optimizer.lr = -1", "optimizer.lr=nan": "optimizer.lr",
                                 "optimizer.lr=inf": "optimizer.lr", "optimizer.betas=[0.9, 1.0]": "optimizer.betas",
                                 "optimizer.betas=[0.9]": "optimizer.betas", "batch.micro=0": "batch.micro = 0",
                                 "batch.micro=-4": "batch.micro = -4", "batch.global=0": "batch.global = 0",
                                 "train.steps=0": "train.steps = 0", "optimizer.eps=-1": "optimizer.eps",
                                 "optimizer.clip_norm=-1": "optimizer.clip_norm", "checkpoint.keep=-1": "checkpoint.keep",
                                 "loss.label_smoothing=1.5": "loss.label_smoothing",
                                 "schedule.min_lr_ratio=2": "schedule.min_lr_ratio",
                                 "train.seed=-1": "train.seed", "data.scale=0": "data.scale",
                                 "data.scale=nan": "data.scale", "data.mean=[nan]": "data.mean",
                                 "data.std=[inf]": "data.std"}.items():
            with self.subTest(assignment=assignment):
                self.bad_key(assignment, says=says)

    def test_unknown_choices(self):
        for assignment, says in {"optimizer.kind=lion": ["optimizer.kind", "lion", "adamw"],
                                 "loss.kind=hinge": ["loss.kind", "hinge", "cross_entropy"],
                                 "schedule.kind=step": ["schedule.kind", "step", "cosine"],
                                 "model.init=zeros": ["model.init", "zeros", "fresh"],
                                 "model.mode=test": ["model.mode", "test", "train"],
                                 "mesh.reduce=slow": ["mesh.reduce", "slow", "fast"],
                                 "precision.compute=f16": ["precision.compute", "f16", "f32"],
                                 "precision.matmul=bf16": ["precision.matmul", "bf16", "tf32"]}.items():
            with self.subTest(assignment=assignment):
                self.bad_key(assignment, says=says)

    def test_what_is_not_there_yet(self):
        for assignment, says in {"mesh.axes={ replicate = 4, tensor = 2 }": "tensor = 2"}.items():
            with self.subTest(assignment=assignment):
                self.bad_key(assignment, says=says)
        for assignment, says in {"mesh.strategy=tensor": "mesh.strategy", "mesh.strategy=hsdp": "which has 1 rank: set mesh.axes.replicate",
                                 "mesh.reshard=sometimes": "mesh.reshard"}.items():
            with self.subTest(assignment=assignment):
                self.compile_refused("--set", "mesh.axes={ shard = 2 }", "--set", "batch.global=8", "--set", assignment, says=says)

    def test_sums_as_a_tree(self):
        for assignments, says in {("mesh.axes={ shard = 3 }", "batch.global=24"): ["mesh.axes.shard = 3 is no power of two", "use 2 or 4"],
                                  ("batch.global=48",): ["batch.global = 48 is 12 microbatches of 4", "use 32 or 64"],
                                  ("precision.reduce_dtype=bf16",): ["precision.reduce_dtype", "f32"],
                                  ("mesh.sync_every=2",): ["mesh.sync_every = 2", "mesh.sync"]}.items():
            with self.subTest(assignments=assignments):
                options = [option for assignment in assignments for option in ("--set", assignment)]
                self.compile_refused("--set", "mesh.reduce=tree", *options, says=says)

    def test_when_ranks_sum(self):
        for assignments, says in {("mesh.sync_every=3",): ["mesh.sync_every = 3", "4 microbatches", "use 2 or 4"],
                                  ("mesh.sync_every=2", "mesh.sync=immediate"): ["mesh.sync_every = 2 contradicts mesh.sync"],
                                  ("mesh.sync={ replicate = 'immediate' }",): ["mesh.sync = { replicate", "make shard immediate, too"],
                                  ("mesh.sync={ rows = 'immediate' }",): ["mesh.sync has an axis 'rows'"],
                                  ("mesh.sync={ shard = 'often' }",): ["mesh.sync.shard", "deferred | immediate"]}.items():
            with self.subTest(assignments=assignments):
                options = [option for assignment in assignments for option in ("--set", assignment)]
                self.compile_refused("--set", "mesh.axes={ replicate = 2, shard = 2 }", "--set", "batch.global=64", *options, says=says)

    # The batch

    def test_global_batch_that_micro_does_not_divide(self):
        self.bad_key("batch.global=30", says=["batch.global = 30", "micro 4", "28 or 32"])

    def test_global_batch_that_the_ranks_do_not_divide(self):
        self.compile_refused("--set", "mesh.axes={ replicate = 3 }", "--set", "batch.global=28", says="micro 4 x data ranks 3 = 12: use 24 or 36")

    def test_batch_beyond_any_machine(self):
        self.compile_refused("--set", "batch.micro=4611686018427387904", "--set", "batch.global=4611686018427387904",
                             says="elements")

    def test_a_microbatch_of_one_is_no_mistake(self):
        """Extents of one degenerate reductions, broadcasts and products: every kind of model trains."""
        for folder in sorted(path for path in REFERENCES.iterdir() if path.is_dir()):
            with self.subTest(folder=folder.name):
                self.succeeds(COMPILE, next(folder.glob("*-train.onnx"), None) or next(folder.glob("*.onnx")), "--recipe",
                              next(folder.glob("*.toml")), "--set", "batch.micro=1", "-o", "job")
                self.succeeds("./job", "train", "--data", folder / "data.npz", "--steps", 1, "--out", f"run-{folder.name}")

    # --set

    def test_set_of_an_unknown_key(self):
        self.bad_key("optimizer.learning_rate=1", says="optimizer.learning_rate")

    def test_set_without_a_value(self):
        for assignment in ("optimizer.lr", "=1", "optimizer=1", ".=1", "optimizer.=1"):
            with self.subTest(assignment=assignment):
                message = self.run_tool(COMPILE, MODEL, "--set", assignment, "-o", "job")
                self.assertIn(message.returncode, (1, 2), message.stderr)
                self.assertEqual(message.stderr.count("\n"), 1, message.stderr)

    def test_set_of_a_wrong_type(self):
        self.bad_key("optimizer.lr=fast", says=["optimizer.lr", "fast"])

    # Against the model

    def test_loss_of_an_output_that_is_not_there(self):
        self.bad("[loss]\noutput = 'logits'\n", says=["logits", "output"])

    def test_loss_without_a_target(self):
        self.bad("[loss]\ntarget = ''\n", says="loss.target")

    def test_target_that_is_an_input(self):
        self.bad("[loss]\ntarget = 'x'\n", says='loss.target = "x" is an input')

    def test_loss_that_the_output_does_not_fit(self):
        self.bad("[loss]\nkind = 'output'\n", says="loss.kind")

    def test_pattern_that_matches_nothing(self):
        """Frozen parameters that do not exist are most likely a typo."""
        self.bad("[model]\nfrozen = ['encoder.*']\n", says=["model.frozen", "encoder.*"])

    def test_group_that_matches_nothing(self):
        self.bad("[[optimizer.group]]\nmatch = 'encoder.*'\nlr_scale = 0.1\n", says=["optimizer.group", "encoder.*"])

    def test_everything_frozen(self):
        self.bad("[model]\nfrozen = ['*']\n", says="model.frozen")

    def test_a_batch_of_two_sizes(self):
        (self.folder / "model.onnx").write_bytes(onnx.linear())
        self.bad("[model]\ndims = { batch = 3 }\n", model="model.onnx",
                 says="model.dims: batch = 3 is the batch of input 'x', which batch.micro = 4 binds: leave batch out, or "
                      "set batch.micro = 3")
        self.recipe("[model]\ndims = { batch = 4 }\n" + RECIPE)
        self.succeeds(COMPILE, "model.onnx", "--recipe", "recipe.toml", "-o", "job")

    def test_values_that_another_kind_has(self):
        for assignment, says in {
                "loss.label_smoothing=0.1": "loss.label_smoothing = 0.1 is for cross_entropy, loss.kind = \"mse\" has no use",
                "loss.class_dim=1": "loss.class_dim = 1 is for cross_entropy, loss.kind = \"mse\" has no use",
                "loss.class_weights=[1, 2]": "loss.class_weights are for cross_entropy, loss.kind = \"mse\" has no use",
                "loss.ignore_index=3": "loss.ignore_index = 3 is for cross_entropy, loss.kind = \"mse\" has no use"}.items():
            self.compile_refused("--set", "loss.kind=mse", "--set", assignment, says=says)
        self.compile_refused("--set", "loss.class_dim=0", says="loss.class_dim = 0 is the batch, not the classes")
        self.compile_refused("--set", "loss.class_weights=[0, 0]", says="loss.class_weights are all 0: no target would count")
        for assignment, says in {
                "optimizer.betas=[0.9, 0.95]": "optimizer.betas = [0.9, 0.95] are for adam and adamw; sgd has momentum",
                "optimizer.eps=1e-6": "optimizer.eps = 1e-06 is for adam and adamw; sgd has none"}.items():
            self.compile_refused("--set", "optimizer.kind=sgd", "--set", assignment, says=says)

    def test_dims_that_the_model_lacks(self):
        self.bad("[model]\ndims = { length = 8 }\n", says=["model.dims", "length"])

    def test_dims_out_of_range(self):
        for size in (0, -1, 1 << 62):
            with self.subTest(size=size):
                self.bad(f"[model]\ndims = {{ length = {size} }}\n", says="length")

    def test_batch_that_cannot_be_bound_again(self):
        """The export's own batch of 3 stands in a constant."""
        table = onnx.tensor("table", np.arange(36, dtype=np.float32).reshape(3, 12))
        weight = onnx.tensor("fc.weight", np.ones((5, 12), np.float32))
        bias = onnx.tensor("fc.bias", np.zeros(5, np.float32))
        model = onnx.linear(initializers=[table, weight, bias], inputs=[onnx.value("x", [3, 12])],
                            nodes=[onnx.node("Add", ["x", "table"], ["s"], "/embed/Add"),
                                   onnx.node("Gemm", ["s", "fc.weight", "fc.bias"], ["y"], "/fc/Gemm", transB=1)],
                            outputs=[onnx.value("y", [3, 5])])
        (self.folder / "model.onnx").write_bytes(model)
        self.compile_refused(model="model.onnx", says=["/embed/Add", "dynamic_shapes"])

    # The names file

    def names(self, text, says):
        (self.folder / "names.toml").write_text(text)
        self.compile_refused("--names", "names.toml", says=says)

    def test_names_file_missing(self):
        self.compile_refused("--names", "none.toml", says=["none.toml", "No such file"])

    def test_names_file_with_a_syntax_error(self):
        self.names("= 3\n", says="names.toml")

    def test_names_file_with_an_unknown_initializer(self):
        self.names('["nowhere.weight"]\nname = "a"\n', says=["names file", "nowhere.weight"])

    def test_names_file_with_an_unknown_key(self):
        self.names('["0.weight"]\nnmae = "a"\n', says=["names.toml", "nmae"])

    def test_names_file_with_an_unknown_kind(self):
        self.names('["0.weight"]\nkind = "matrix"\n', says=["names.toml", "matrix"])

    def test_names_file_that_gives_a_name_twice(self):
        self.names('["2.weight"]\nname = "0.weight"\n', says=["'0.weight' and '2.weight'", "called '0.weight'"])

    def test_names_file_with_names_that_cannot_be_printed(self):
        for name in ("", "a\\nb", "a\\u0000b"):
            with self.subTest(name=name):
                self.names(f'["0.weight"]\nname = "{name}"\n', says="0.weight")


class CommandLine(ErrorTest):
    """titan-compile itself."""

    def usage(self, *arguments, says=()):
        return self.refused(USAGE, COMPILE, *arguments, says=says)

    def test_nothing(self):
        self.usage(says="model")

    def test_unknown_flag(self):
        self.usage(MODEL, "--optimise", says="--optimise")

    def test_unknown_stage(self):
        self.usage(MODEL, "--emit=assembly", says="assembly")

    def test_unknown_architecture(self):
        self.usage(MODEL, "--arch=z80", says="z80")

    def test_unknown_card(self):
        self.usage(MODEL, "--target=cuda", "--arch=sm_12", says="sm_12")

    def test_options_without_a_value(self):
        for option in ("--arch=", "--output="):
            self.usage(MODEL, option, "--target=cuda",
                       says=f"{option} has no value: write one behind the =, or leave the option out")

    def test_unknown_pass(self):
        self.usage(MODEL, "--disable-pass=titan-no-such-pass", says="titan-no-such-pass")

    def test_needed_pass(self):
        self.usage(MODEL, "--disable-pass=titan-lower-form-kernels", says="titan-lower-form-kernels")

    def test_remarks_that_are_no_regular_expression(self):
        self.usage(MODEL, "--remarks=(", says="--remarks")

    def test_flags_that_exclude_one_another(self):
        self.usage(MODEL, "--check", "--emit=import", says="--check")

    def test_two_models(self):
        self.usage(MODEL, MODEL)

    def test_model_that_is_empty(self):
        self.usage("")


class WholeMessages(ErrorTest):
    """What a recipe says wrong without any model: the sentence, not only its key."""

    def test_they_say_what_to_do(self):
        rule, group = "[model]\ninit = 'fresh'\n[[model.init_rule]]\n", "[[optimizer.group]]\n"
        for text, says in {
                "[model]\n[[model.init_rule]]\nmatch = '*'\n":
                    'model.init = "model" has no use for [[model.init_rule]]: set it to "fresh" or remove the rules',
                rule + "std = 1\n": "a [[model.init_rule]] needs match, a pattern of parameter names",
                rule + "match = 'a'\ndist = 'cauchy'\n":
                    'model.init_rule \'a\': dist = "cauchy" is not known: use normal, uniform or constant',
                rule + "match = 'a'\ndist = 'uniform'\nlow = 2\nhigh = 1\n": "model.init_rule 'a': low = 2 must be below high = 1",
                rule + "match = 'a'\ndist = 'constant'\nstd = 0.1\n":
                    'model.init_rule \'a\': std = 0.1 is for dist = "normal", "constant" has no use for it',
                "[ema]\nbuffers = ['*']\n": "ema.buffers are averaged by ema.profiles, and there are none",
                group + "lr_scale = 2\n": "an [[optimizer.group]] needs match, a pattern of parameter names",
                "momentum = 0.9\n": "optimizer.momentum = 0.9 is for sgd; adam has betas",
                "nesterov = true\n": "optimizer.nesterov = true needs optimizer.momentum above 0",
                "[schedule]\nkind = 'cosine'\nwarmup_steps = 9\nsteps = 4\n":
                    "schedule.warmup_steps = 9 is more than the schedule's 4 steps: set schedule.steps or train.steps higher",
                "[loss]\ntarget = ''\n": "loss.target is empty: name the data field with the targets",
                "[loss]\nlabel_smoothing = 1.5\n": "loss.label_smoothing = 1.5 must be in [0, 1)"}.items():
            with self.subTest(text=text):
                self.recipe(RECIPE.replace("[optimizer]", text + "[optimizer]") if text.startswith("[") else
                            RECIPE.replace("lr = 1e-3\n", "lr = 1e-3\n" + text))
                self.compile_refused(says=says)

    def test_of_assignments(self):
        for assignment, says in {"data.scale=0": "data.scale = 0 makes every value the same", "data.std=[0]": "data.std = 0 must be above 0",
                                 "train.seed=-1": "train.seed = -1 must be at least 0",
                                 "optimizer.eps": "'optimizer.eps' is not key=value"}.items():
            with self.subTest(assignment=assignment):
                self.compile_refused("--set", assignment, says=says, code=USAGE if "=" not in assignment else 1)
        self.compile_refused("--set", "data.mean=[1, 2]", "--set", "data.std=[1, 2, 3]",
                             says="data.mean has 2 values, data.std has 3: give one each, or one per channel")


if __name__ == "__main__":
    unittest.main()
