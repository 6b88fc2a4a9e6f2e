#!/usr/bin/env python3
"""The judge of accounts is tested: it accepts a true account, and sees each lie that it is there to see."""
import copy
import unittest

import numpy as np

from account import UNLISTED, Export, Run, Source, judge


def line(standing, name, shape, **more):
    return {"standing": standing, "name": name, "kind": "parameter", "of": [], "initializers": [name], "dtype": "F32", "shape": list(shape),
            "proof": None, "noted": False} | more


STATE = {"a.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "a.bias": np.ones(2, np.float32), "mask": np.ones(3, np.float32)}


def after(steps):
    return {name: value - (steps * 0.1 * (value + 1) if name != "mask" else 0) for name, value in STATE.items()}


SOURCE = Source([STATE, after(1), after(2)], [], {"mask": True}, set(), [2.0, 1.0])
EXPORT = Export(["a.weight", "a.bias", "mask"], ["a.weight", "a.bias", "mask"])
ACCOUNT = [line("exact", "a.weight", [2, 3]), line("exact", "a.bias", [2]), line("exact", "mask", [3], kind="buffer")]
RUN = Run([2.0, 1.0], after(1), after(2))


def judged(account=ACCOUNT, run=RUN, export=EXPORT, source=SOURCE, notes=None):
    standings = {one["standing"] for one in account}
    said = [f"'{one['name']}'" for one in account if one["noted"]] if notes is None else notes
    counts = {standing: sum(one["standing"] == standing for one in account) for standing in standings}
    return judge({"tensors": account, "notes": said, "counts": counts}, export, run, source)


def changed(index, **fields):
    account = copy.deepcopy(ACCOUNT)
    account[index].update(fields)
    return account


def trained(**tensors):
    """A run whose tensors are those of RUN with others in their places; None: without it."""
    names = {name.replace("__", "."): value for name, value in tensors.items()}
    states = [{name: value for name, value in ({**state, **names}).items() if value is not None} for state in (RUN.first, RUN.last)]
    return Run(RUN.losses, *states)


def unlisted_without_bias(more=(), notes=(), initializers=("a.weight", "mask")):
    """A file that names no parameters of the source, and has all but a.bias."""
    return judged([ACCOUNT[0], ACCOUNT[2], *more], trained(a__bias=None), Export(list(initializers), []), notes=list(notes))


def weight_of_two(computed):
    """A file without names of parameters whose `computed` is g * v / |v| of module a, with the values of v."""
    v, g = STATE["a.weight"], np.linalg.norm(STATE["a.weight"], axis=1, keepdims=True)
    state = {"a.v": v, "a.g": g, "a.bias": STATE["a.bias"]}
    trained = {computed["name"]: v, "a.bias": STATE["a.bias"]}
    return judged([computed, ACCOUNT[1]], Run(RUN.losses, trained, trained), Export(["val_1", "a.bias"], []),
                  Source([state, state, state], [], {}, set(), [2.0, 1.0]))


class Truths(unittest.TestCase):
    def test_nothing_to_say(self):
        found = judged()
        self.assertEqual((found.silent, found.explained), ([], []))

    def test_another_name_with_a_note(self):
        account = changed(0, standing="made up", name="gemm_0.weight", noted=True, initializers=["val_1"])
        states = [{"gemm_0.weight" if name == "a.weight" else name: value.T if name == "a.weight" else value for name, value in state.items()}
                  for state in (RUN.first, RUN.last)]
        found = judged(account, Run(RUN.losses, *states), Export(["val_1", "a.bias", "mask"], []))
        self.assertEqual(found.silent, [])
        self.assertIn("is trained as gemm_0.weight", found.explained[0])
        self.assertFalse(found.loose)

    def test_absent_with_a_note(self):
        account = changed(1, standing="absent", noted=True, initializers=[])
        run = Run([2.0, 1.5], *[{name: value for name, value in state.items() if name != "a.bias"} for state in (RUN.first, RUN.last)])
        found = judged(account, run, Export(["a.weight", "mask"], EXPORT.listed))
        self.assertEqual(found.silent, [])
        self.assertTrue(found.loose)

    def test_drift_of_what_is_noted(self):
        last = {**RUN.last, "a.bias": RUN.last["a.bias"] + 0.1, "a.weight": RUN.last["a.weight"] + 0.1}
        found = judged(changed(1, noted=True), Run([2.0, 1.1], RUN.first, last))
        self.assertEqual(found.silent, [])
        self.assertEqual(len(found.explained), 1)
        self.assertIn("a.bias is in the end", found.explained[0])
        self.assertTrue(found.loose)

    def test_part_that_starts_as_one_of_two(self):
        found = weight_of_two(line("part", "a.gemm_0.weight", [2, 3], noted=True, initializers=["val_1"]))
        self.assertEqual(found.silent, [])
        self.assertIn("a.v [2, 3] is trained as a.gemm_0.weight", found.explained)
        self.assertIn("a.g [2, 1] is not there, and the file has no names", found.explained)

    def test_removed_where_nothing_is_listed(self):
        found = unlisted_without_bias(notes=[f"the metadata is gone: {UNLISTED}, and is not trained"])
        self.assertEqual(found.silent, [])
        self.assertIn("a.bias [2] is not there, and the file cannot say so", found.explained)
        self.assertTrue(found.loose)


class Lies(unittest.TestCase):
    def assertSilent(self, text, found):
        self.assertIn(text, "\n".join(found.silent))

    def test_first_update(self):
        self.assertSilent("a.bias is 0.0", judged(run=trained(a__bias=RUN.first["a.bias"] + 0.01)))

    def test_last_update(self):
        last = {**RUN.last, "a.bias": RUN.last["a.bias"] + 0.1}
        self.assertSilent("in the end", judged(run=Run(RUN.losses, RUN.first, last)))

    def test_last_update_beside_what_is_noted(self):
        last = {**RUN.last, "a.weight": RUN.last["a.weight"] + 0.1}
        self.assertSilent("a.weight is in the end", judged(changed(1, noted=True), Run(RUN.losses, RUN.first, last)))

    def test_part_of_another_module(self):
        self.assertSilent("a.g [2, 1] is not there", weight_of_two(line("part", "b.gemm_0.weight", [2, 3], noted=True, initializers=["val_1"])))

    def test_part_of_named_parameters(self):
        of_one = line("part", "a.gemm_0.weight", [2, 3], noted=True, initializers=["val_1"], of=["a.v"])
        self.assertSilent("a.g [2, 1] is not there", weight_of_two(of_one))

    def test_first_loss(self):
        self.assertSilent("first loss", judged(run=Run([2.1, 1.0], RUN.first, RUN.last)))

    def test_last_loss(self):
        self.assertSilent("losses", judged(run=Run([2.0, 1.1], RUN.first, RUN.last)))

    def test_no_loss(self):
        self.assertSilent("losses", judged(run=Run([2.0, None], RUN.first, RUN.last)))

    def test_shape(self):
        self.assertSilent("has shape [3, 2]", judged(changed(0, shape=[3, 2]), trained(a__weight=RUN.first["a.weight"].T)))

    def test_shape_with_a_note(self):
        self.assertSilent("has shape [3, 2]", judged(changed(0, shape=[3, 2], noted=True), trained(a__weight=RUN.first["a.weight"].T)))

    def test_made_up_without_a_note(self):
        self.assertSilent("without a note", judged(changed(0, standing="made up", name="gemm_0.weight"), trained(a__weight=None, gemm_0__weight=STATE["a.weight"])))

    def test_part_under_the_name(self):
        self.assertSilent("under a name of PyTorch's", judged(changed(0, standing="part", noted=True)))

    def test_unknown_name_as_exact(self):
        self.assertSilent("is no name of PyTorch", judged(changed(0, name="exp"), trained(a__weight=None, exp=STATE["a.weight"])))

    def test_buffer_as_parameter(self):
        self.assertSilent("mask is a parameter", judged(changed(2, kind="parameter")))

    def test_missing_parameter(self):
        found = judged(ACCOUNT[:1] + ACCOUNT[2:], trained(a__bias=None))
        self.assertSilent("a.bias [2] is not there", found)
        self.assertSilent("tensor a.bias has no line", found)
        self.assertSilent("a.bias of the signature has no line", found)

    def test_removed_without_a_note(self):
        self.assertSilent("a.bias [2] is not there", unlisted_without_bias(notes=[]))

    def test_removed_and_in_the_file(self):
        self.assertSilent("a.bias [2] is not there", unlisted_without_bias(notes=[UNLISTED], initializers=["a.weight", "a.bias", "mask"]))

    def test_removed_and_a_constant(self):
        constant = line("constant", "val_1", [2], proof="angles")
        self.assertSilent("a.bias [2] is not there", unlisted_without_bias([constant], [UNLISTED], ["a.weight", "val_1", "mask"]))

    def test_constant_without_proof(self):
        self.assertSilent("without proof", judged(changed(1, standing="constant"), trained(a__bias=None)))

    def test_parameter_as_proved_constant(self):
        self.assertSilent("trained in PyTorch", judged(changed(1, standing="constant", proof="angles"), trained(a__bias=None)))

    def test_tie(self):
        source = copy.deepcopy(SOURCE)
        for state in source.states:
            state["b.bias"] = state["a.bias"] + 1
        account = [*ACCOUNT, line("alias", "b.bias", [2], of=["a.bias"], initializers=[])]
        found = judged(account, source=source)
        self.assertSilent("b.bias is a.bias, and not in PyTorch", found)
        self.assertSilent("b.bias [2] is not there", found)

    def test_lost_tie(self):
        source = copy.deepcopy(SOURCE)
        source.ties = [["a.bias", "b.bias"]]
        for state in source.states:
            state["b.bias"] = state["a.bias"]
        account = [*ACCOUNT, line("exact", "b.bias", [2])]
        run = Run(RUN.losses, *[{**state, "b.bias": state["a.bias"]} for state in (RUN.first, RUN.last)])
        self.assertSilent("a.bias = b.bias is trained 2 times", judged(account, run, source=source))

    def test_two_lines_of_a_tensor(self):
        self.assertSilent("initializer a.weight has several lines", judged(changed(1, initializers=["a.weight"])))

    def test_two_lines_of_a_name(self):
        self.assertSilent("name a.bias has several lines", judged([*ACCOUNT, line("absent", "a.bias", [], initializers=[])]))

    def test_in_no_note(self):
        self.assertSilent("is in no note", judged(changed(0, noted=True), notes=["'a.bias'"]))

    def test_tensor_that_is_not_in_the_account(self):
        self.assertSilent("val_7 is in the checkpoint alone", judged(run=trained(val_7=np.ones(2))))


if __name__ == "__main__":
    unittest.main()
