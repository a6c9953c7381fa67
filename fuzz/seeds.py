#!/usr/bin/env python3
"""Texts to begin with: every literal of the tests and the code, what the pages show, and every file of the examples.

    python3 fuzz/seeds.py [FOLDER]

writes them into FOLDER (by default fuzz/artifacts/seeds), one file each. A target keeps of them what is news to it:

    spec -merge=1 corpus/spec artifacts/seeds
"""

import hashlib
import pathlib
import re
import sys

HOUSE = pathlib.Path(__file__).resolve().parent.parent
BYTES_MAX = 16 * 1024
LITERAL = re.compile(
    r"""r(?P<hashes>\#*)"(?P<raw>.*?)"(?P=hashes)   # r#"as it stands"#
      | "(?P<plain>(?:[^"\\]|\\.)*)"                # "with \n escapes"
      | '(?:[^'\\]|\\.[^']*)'                       # 'c', which may be a quote
      | //[^\n]*                                    # a comment, which may hold one
    """, re.DOTALL | re.VERBOSE)
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}


def unescaped(text):
    """A literal as the compiler reads it."""
    text = re.sub(r"\\\n\s*", "", text)
    text = re.sub(r"\\u\{([0-9a-fA-F_]+)\}", lambda match: chr(int(match.group(1), 16)), text)
    text = re.sub(r"\\x([0-7][0-9a-fA-F])", lambda match: chr(int(match.group(1), 16)), text)
    return re.sub(r"\\(.)", lambda match: ESCAPES.get(match.group(1), match.group(1)), text)


def of_code(text):
    """The literals of a file of Rust, and those that may be patterns of `format!` as that prints them."""
    for match in LITERAL.finditer(text):
        literal = match["raw"] if match["raw"] is not None else match["plain"] and unescaped(match["plain"])
        if literal:
            yield literal
            yield literal.replace("{{", "{").replace("}}", "}")


def of_page(text):
    """What a page shows: blocks, and words that are set as code."""
    yield from re.findall(r"^```[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    yield from re.findall(r"`([^`\n]+)`", text)


def texts():
    readers = {".rs": of_code, ".md": of_page, ".toml": lambda text: [text], ".json": lambda text: [text],
               ".snap": lambda text: [text.split("\n---\n", 1)[-1]]}
    for file in sorted(HOUSE.rglob("*")):
        parts = file.relative_to(HOUSE).parts
        if file.suffix in readers and not {"target", "artifacts", ".git"} & set(parts):
            yield from readers[file.suffix](file.read_bytes().decode(errors="replace"))


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HOUSE / "fuzz" / "artifacts" / "seeds"
    folder.mkdir(parents=True, exist_ok=True)
    known = {text.encode(errors="replace") for text in texts()}
    known = [text for text in known if 1 < len(text) <= BYTES_MAX]
    for text in known:
        (folder / hashlib.sha1(text).hexdigest()).write_bytes(text)
    print(f"{len(known)} texts")


if __name__ == "__main__":
    main()
