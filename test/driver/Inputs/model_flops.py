"""model_flops.py PLAN.json step=N eval=N predict=N: the plan's FLOP of the model are N, an expression of Python."""
import json
import sys

functions = json.load(open(sys.argv[1]))["functions"]
for argument in sys.argv[2:]:
    name, _, expression = argument.partition("=")
    expected, counted = eval(expression), functions[name]["model_flops"]
    if counted != expected:
        sys.exit(f"@{name} counts {counted} FLOP of the model, expected {expected}")
    # What a function does beside the model's work comes on top of it.
    if functions[name]["flops"] < counted:
        sys.exit(f"@{name} does {functions[name]['flops']} FLOP in all, of the model's {counted}")
