"""Print Megatron-LM's flag table as JSON. Run it in a checkout of Megatron-LM, in an
environment where `import megatron.training.arguments` works:

    python dump.py > flags.json
    go run ./knowledge/megatron/flaggen -add flags.json -release 0.20.0 -const V020 -tag core_v0.20.0 -commit SHA -date DATE
"""

import argparse
import json
import sys

from megatron.training.arguments import add_megatron_arguments


def plain(value):
    """A value that JSON can hold: enums by name, callables and the rest as text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return getattr(value, "name", str(value))


def main():
    parser = add_megatron_arguments(argparse.ArgumentParser(allow_abbrev=False))
    seen, rows = set(), []
    for group in parser._action_groups:
        for action in group._group_actions:
            if id(action) in seen or not action.option_strings or action.dest == "help":
                continue
            seen.add(id(action))
            kind = type(action).__name__.strip("_")
            rows.append({
                "name": action.option_strings[0],
                "aliases": action.option_strings[1:],
                "dest": action.dest,
                "type": getattr(action.type, "__name__", None) or ("flag" if action.nargs == 0 else "str"),
                "action": kind,
                "const": plain(action.const),
                "default": plain(action.default),
                "choices": plain(list(action.choices)) if action.choices else None,
                "nargs": action.nargs,
                "group": group.title,
            })
    json.dump({"args": rows}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
