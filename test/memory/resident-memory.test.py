"""Helper of resident-memory.test: makes text; compares the plan with what a run had in memory."""
import json
import sys

if sys.argv[1] == "text":
    with open(sys.argv[2], "w") as file:
        file.write("all work and no play makes jack a dull boy. " * 500)
else:
    memory = json.load(open(sys.argv[2]))["memory"]
    steps = [json.loads(line) for line in open(sys.argv[3])]
    resident = max(step["resident"] for step in steps if "resident" in step)
    bound = memory["arena"] + memory["outside"]["bound"]
    print(f"resident {resident}, arena {memory['arena']}, outside at most {memory['outside']['bound']}")
    assert memory["arena"] * 0.9 < resident <= bound
    assert memory["temporaries"] <= 1.02 * max(memory["max_live"].values())
