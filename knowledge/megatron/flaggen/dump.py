#!/usr/bin/env python3
"""Prints the flags of the Megatron-LM that Python imports, as the JSON that flaggen -add reads.

Run it where that release imports, in its container or environment:
    PYTHONPATH=/path/to/Megatron-LM python3 dump.py > flags.json
"""
import argparse
import enum
import json

from megatron.training.arguments import add_megatron_arguments


def plain(value):
    """A value as JSON has it: an enumeration's member by its name, a set or tuple as a list."""
    if isinstance(value, enum.Enum):
        return value.value if value.__class__.__name__ == "Signals" else value.name
    if isinstance(value, (set, frozenset, tuple, list, range)):
        return [plain(v) for v in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def kind(action):
    """The name of what converts a value; 'flag' for a switch."""
    if isinstance(action, argparse.BooleanOptionalAction):
        return "bool"
    if action.nargs == 0:
        return "flag"
    return getattr(action.type, "__name__", "str") if action.type else "str"


def main():
    """Print one object for each action of the parser, in the parser's order."""
    parser = add_megatron_arguments(argparse.ArgumentParser(allow_abbrev=False))
    rows = []
    for group in parser._action_groups:
        for a in group._group_actions:
            if not a.option_strings or isinstance(a, argparse._HelpAction):
                continue
            rows.append({
                "name": a.option_strings[0], "aliases": a.option_strings[1:], "dest": a.dest, "type": kind(a),
                "action": type(a).__name__.lstrip("_"), "default": plain(a.default),
                "choices": plain(a.choices) if a.choices else None, "nargs": a.nargs, "group": group.title,
            })
    print(json.dumps({"args": rows}, indent=1))


if __name__ == "__main__":
    main()
