"""`onset COMMAND …`: finds the command, and turns what goes wrong into one sentence."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from dynamics import InputError

# What each command does. Its module, of the same name, is loaded only when it is asked for.
COMMANDS = {
    "derive": "a model's derivation, each published equation beside ours, with verdicts",
    "laws": "every closed-form law with its range and error, or those that a setting admits",
    "predict": "when a model's loss falls: its closed-form law and its flow",
    "solve": "the value of a parameter that makes emergence fall within N steps",
    "sweep": "the same over a grid of settings, as a table, files and a picture",
    "validate": "train nets and set their plateau lengths beside the prediction",
    "report": "write the report of a finished run again",
}


def main(arguments: Sequence[str]) -> int:
    """Run a command; returns the exit code, 2 after bad input, with one sentence on stderr."""
    try:
        if not arguments or arguments[0] in ("-h", "--help"):
            print("usage: onset COMMAND …\n")
            for name, meaning in COMMANDS.items():
                print(f"  {name:10}{meaning}")
            print("\n`onset COMMAND --help` says more.")
        elif arguments[0] == "--version":
            from importlib.metadata import version

            print(f"onset {version('attention-onset')}")
        elif arguments[0] not in COMMANDS:
            raise InputError(
                f"command {arguments[0]!r} is unknown: use one of {', '.join(COMMANDS)}"
            )
        else:
            return import_module(f"onset.{arguments[0]}").main(arguments[1:]) or 0
    except InputError as error:
        print(f"onset: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        print(f"onset: {error}: make room for it, or choose another place", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("onset: interrupted; what was finished is kept", file=sys.stderr)
        return 130
    return 0


def entry() -> None:
    """The console script, in a hurry: a command's wall time is mostly imports.

    They allocate much and free little, so collecting garbage less often saves 0.2 s; leaving
    without taking JAX and sympy apart saves 0.4 s.
    """
    gc.set_threshold(100_000, 50, 100)
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        code = 0
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    entry()
