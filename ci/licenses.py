#!/usr/bin/env python3
"""Checks that every package the workspace builds on has a licence that the project accepts.

Reads `cargo tree`, so it needs nothing beyond cargo and Python.
"""

import re
import subprocess
import sys

ACCEPTED = {
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "WTFPL",
    "Zlib",
}


def accepted(expression: str) -> bool:
    """True if the SPDX expression can be met with accepted licences alone."""
    expression = expression.replace("/", " OR ")
    tokens = re.findall(r"\(|\)|[^()\s]+(?:\s+WITH\s+[^()\s]+)?", expression)
    words = []
    for token in tokens:
        token = re.sub(r"\s+", " ", token)
        if token in ("(", ")"):
            words.append(token)
        elif token in ("AND", "OR"):
            words.append(token.lower())
        else:
            words.append(str(token in ACCEPTED))
    return bool(eval(" ".join(words)))  # only parentheses, and/or, True/False reach this


def main() -> int:
    tree = subprocess.run(
        ["cargo", "tree", "--workspace", "--all-features", "--locked", "--prefix", "none", "--no-dedupe"]
        + ["--format", "{p};{l}"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    packages = {}
    for line in filter(None, tree.splitlines()):
        name, licence = line.rsplit(";", 1)
        packages[name.removesuffix(" (proc-macro)")] = licence
    refused = [
        f"{name}: {licence or 'no licence named'}"
        for name, licence in sorted(packages.items())
        if not licence or not accepted(licence)
    ]
    for line in refused:
        print(line, file=sys.stderr)
    print(f"{len(packages)} packages, {len(refused)} with a licence that is not accepted")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
