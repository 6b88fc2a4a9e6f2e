"""Printed stages that were edited by hand, and what titan-opt makes of them: a diagnostic, never a crash."""
import random
import re
import unittest

from support import BAD_INPUT, COMPILE, INTERNAL, OPT, USAGE, ErrorTest, MODEL, tree

STAGES = ("import", "differentiate", "optimize", "accumulate", "shard", "schedule", "lower", "plan")


class Stages(ErrorTest):
    def stage(self, name):
        """Prints MODEL at a stage, once a test run, into the scratch folder; returns the text."""
        if name not in self._printed:
            self.succeeds(COMPILE, MODEL, "--recipe", "recipe.toml", f"--emit={name}", "--weights-dir", MODEL.parent,
                          "-o", "printed.mlir")
            self._printed[name] = (self.folder / "printed.mlir").read_text()
        return self._printed[name]

    _printed = {}

    def compile_text(self, text):
        """titan-compile of a stage that says `text`."""
        (self.folder / "edited.mlir").write_text(text)
        return self.run_tool(COMPILE, "edited.mlir", "--weights-dir", MODEL.parent, "-o", "edited")

    def bad(self, text, code=BAD_INPUT, says="edited.mlir", **options):
        (self.folder / "edited.mlir").write_text(text)
        return self.refused(code, COMPILE, "edited.mlir", "--weights-dir", MODEL.parent, "-o", "edited", says=says,
                            **options)

    def test_unedited_stages_compile_to_the_same_job(self):
        digests = set()
        for stage in STAGES:
            self.assertEqual(self.compile_text(self.stage(stage)).returncode, 0, stage)
            digests.update(tree(self.folder / "edited").values())
        self.assertEqual(len(digests), 1)

    # The file

    def test_missing(self):
        self.refused(BAD_INPUT, COMPILE, "none.mlir", "-o", "edited", says="none.mlir")

    def test_folder(self):
        (self.folder / "folder.mlir").mkdir()
        self.refused(BAD_INPUT, COMPILE, "folder.mlir", "-o", "edited", says="folder.mlir")

    def test_printed_code(self):
        code = self.succeeds(COMPILE, MODEL, "--recipe", "recipe.toml", "--emit=codegen", "--weights-dir", MODEL.parent).stdout
        self.bad(code, says="edited.mlir was printed by --emit=codegen, from which nothing goes on: a compilation goes on "
                            "from what --emit prints of a stage from import to plan")

    def test_empty(self):
        self.bad("", says="")

    def test_binary(self):
        (self.folder / "edited.mlir").write_bytes(bytes(range(256)) * 16)
        self.refused(BAD_INPUT, COMPILE, "edited.mlir", "-o", "edited", says="edited.mlir")

    def test_syntax_error(self):
        text = self.stage("import")
        self.bad(text.replace("titan.relu", "titan.relu(", 1), says="edited.mlir:")

    def test_unknown_op(self):
        self.bad(self.stage("import").replace("titan.relu", "titan.swish9", 1), says="titan.swish9")

    def test_truncated(self):
        for stage in STAGES:
            text = self.stage(stage)
            with self.subTest(stage=stage):
                self.bad(text[:len(text) * 2 // 3])

    # Which stage it is

    def test_going_backwards(self):
        (self.folder / "edited.mlir").write_text(self.stage("lower"))
        self.refused(USAGE, COMPILE, "edited.mlir", "--emit=optimize", says=["lower", "optimize"])

    def test_unknown_stage(self):
        self.bad(self.stage("import").replace('titan.stage = "import"', 'titan.stage = "imported"'), says="imported")

    def test_stage_of_another_type(self):
        self.bad(self.stage("import").replace('titan.stage = "import"', "titan.stage = 3"), says="titan.stage")

    def test_claimed_stage_is_not_reached(self):
        """A module that says it is further than it is: what its stage promises does not hold."""
        for stage, claimed in (("import", "differentiate"), ("import", "optimize"), ("import", "schedule"),
                               ("import", "lower"), ("import", "plan"), ("differentiate", "shard"),
                               ("optimize", "lower"), ("schedule", "plan"), ("lower", "plan"), ("plan", "import"),
                               ("lower", "optimize"), ("optimize", "import")):
            with self.subTest(stage=stage, claimed=claimed):
                text = self.stage(stage).replace(f'titan.stage = "{stage}"', f'titan.stage = "{claimed}"')
                done = self.compile_text(text)
                self.assertIn(done.returncode, (BAD_INPUT, INTERNAL), done.stderr[-2000:])
                self.assertEqual(done.stderr.count("error: "), 1, done.stderr)

    def test_recipe_that_is_no_recipe(self):
        text = self.stage("import")
        for old, new, says in (('kind = "adam"', 'kind = "lion"', "lion"), ("micro = 4 : i64", "micro = 0 : i64", "micro"),
                               ("micro = 4 : i64", 'micro = "four"', "micro"), ("momentum = ", "momentun = ", "momentun")):
            with self.subTest(new=new):
                self.assertIn(old, text)
                self.bad(text.replace(old, new, 1), says=says)

    def test_recipe_beside_a_stage_that_carries_one(self):
        (self.folder / "edited.mlir").write_text(self.stage("import"))
        self.refused(USAGE, COMPILE, "edited.mlir", "--recipe", "recipe.toml", says="--recipe")

    def test_target_that_is_none(self):
        text = self.stage("import")
        self.assertRegex(text, r'cpu = "[^"]*"')
        self.bad(re.sub(r'cpu = "[^"]*"', 'cpu = "z80"', text), says="z80")

    def test_weights_of_another_file(self):
        text = re.sub(r"digest = \d+", "digest = 1", self.stage("import"))
        self.bad(text, says=["dynamo-train.onnx", "not those"])

    # A plan: code relies on what it says about places

    def plan_with(self, old, new):
        text = self.stage("plan")
        self.assertIn(old, text)
        return text.replace(old, new, 1)

    def test_plan_with_overlapping_buffers(self):
        first, second = re.findall(r"kernel\.buffer (\d+) : memref<\d+x", self.stage("plan"))[:2]
        self.bad(self.plan_with(f"kernel.buffer {second} ", f"kernel.buffer {first} "),
                 says=[f"temporary at {first}", "shares bytes with another that is live then"])

    def test_plan_that_leaves_the_arena(self):
        text = self.stage("plan")
        end = re.search(r"kernel\.arena = {.*?bytes = (\d+)", text)[1]
        offset = re.search(r"kernel\.buffer (\d+) ", text)[1]
        self.bad(self.plan_with(f"kernel.buffer {offset} ", f"kernel.buffer {end} "), says=[end, "leaves"])

    def test_plan_with_a_product_that_leaves_its_operands(self):
        self.bad(self.plan_with("k = 12, lda = 12, ldb = 12", "k = 13, lda = 13, ldb = 13"),
                 says="touches 52 elements of A, which has 48")

    def test_plan_that_updates_a_weight_too_early(self):
        text = self.stage("plan")
        gradient = re.search(r"kernel\.call #kernel\.gemm<[^\n]*accumulate = true[^\n]*outs\((%\d+) : memref<5x16xf32>", text)
        line = gradient[0]
        self.bad(text.replace(line, line.replace(f"outs({gradient[1]} ", "outs(%arg4 "), 1),
                 says=["4.weight", "before the phase 'update'"])

    # The module

    def test_changed_types(self):
        """One extent of one type in the text changed, at each stage: refused by a verifier."""
        generator = random.Random(1)
        for stage in STAGES:
            text = self.stage(stage)
            places = [m for m in re.finditer(r"(?:tensor|memref)<(\d+)x", text)]
            for match in generator.sample(places, 3):
                with self.subTest(stage=stage, at=match.start()):
                    self.survives(text[:match.start(1)] + str(int(match[1]) + 3) + text[match.end(1):])

    def test_removed_lines(self):
        generator = random.Random(2)
        for stage in STAGES:
            lines = self.stage(stage).splitlines(keepends=True)
            for at in generator.sample(range(len(lines)), 3):
                with self.subTest(stage=stage, line=lines[at].strip()[:120]):
                    self.survives("".join(lines[:at] + lines[at + 1:]))

    def test_swapped_lines(self):
        generator = random.Random(3)
        for stage in STAGES:
            lines = self.stage(stage).splitlines(keepends=True)
            for at in generator.sample(range(len(lines) - 1), 3):
                with self.subTest(stage=stage, line=lines[at].strip()[:120]):
                    self.survives("".join(lines[:at] + [lines[at + 1], lines[at]] + lines[at + 2:]))

    def test_changed_numbers(self):
        generator = random.Random(4)
        for stage in STAGES:
            text = self.stage(stage)
            body = text.index("\n") + 1
            places = [m for m in re.finditer(r"(?<![\w%@#.])-?\d+(?![\w.])", text) if m.start() > body]
            for match in generator.sample(places, 5):
                value = generator.choice(["-1", "0", "7", "1000000", "9223372036854775807", "99999999999999999999"])
                with self.subTest(stage=stage, at=match.start(), value=value,
                                  line=text[text.rfind("\n", 0, match.start()) + 1:match.start()].strip()[-100:]):
                    self.survives(text[:match.start()] + value + text[match.end():])

    def test_renamed_symbols(self):
        for stage in STAGES:
            text = self.stage(stage)
            for old, new in (('@"0.weight"', '@"9.weight"'), ("@step", "@stop"), ("@model", "@other"),
                             ("@eval", "@step"), ("@predict", "@eval")):
                if old in text:
                    with self.subTest(stage=stage, old=old):
                        self.survives(text.replace(old, new, 1))
                        self.survives(text.replace(old, new))

    def survives(self, text):
        """Either it compiles (not every edit is wrong), or it is refused in one line."""
        done = self.compile_text(text)
        self.assertIn(done.returncode, (0, BAD_INPUT, INTERNAL), done.stderr[-2000:])
        if done.returncode != 0:
            self.assertEqual(done.stderr.count("error: "), 1, done.stderr)


class TitanOpt(ErrorTest):
    def test_nonsense(self):
        for arguments in (("none.mlir",), ("--no-such-pass", "recipe.toml"), ("recipe.toml",)):
            with self.subTest(arguments=arguments):
                done = self.run_tool(OPT, *arguments)
                self.assertIn(done.returncode, (1, 2), done.stderr)

    def test_every_pass_survives_an_empty_module(self):
        (self.folder / "empty.mlir").write_text("module {}\n")
        listing = self.run_tool(OPT, "--help").stdout
        passes = re.findall(r"^\s+--(titan-[a-z-]+)", listing, re.M)
        self.assertGreater(len(passes), 20)
        for name in passes:
            with self.subTest(name=name):
                done = self.run_tool(OPT, "empty.mlir", f"--{name}")
                self.assertIn(done.returncode, (0, 1), done.stderr[-2000:])


if __name__ == "__main__":
    unittest.main()
