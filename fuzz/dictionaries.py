#!/usr/bin/env python3
"""Dictionaries for the fuzz targets: the words that each of them reads, taken from the code and the kept corpora.

    python3 fuzz/dictionaries.py [FOLDER]

writes FOLDER/TARGET.dict (by default into fuzz/artifacts/dictionaries) for `-dict=`. A mutator that knows no words
never guesses `create_before_destroy` letter by letter: comparisons of whole words tell it nothing.
"""

import collections
import pathlib
import re
import sys

HOUSE = pathlib.Path(__file__).resolve().parent.parent
WORDS_MAX = 450
BYTES_MAX = 60

EXPRESSION = """${ } %{ ! <<E <<-E ? : => ... [*] .* && || == != >= for if null true false each.key each.value var. local.
    /* */ # // -1 1e400 9223372036854775807 0.1 \\u{ \\n \\" $${""".split() + ["[for v in ", "{for k, v in ", " if "]
JSON = """{" ": [] {} null true false -1 1e400 9223372036854775807 \\u0000 \\ud800 },{ ":{" ":[\"""".split()
TOML = """[ [[ ]] \""" ''' . [resource. [variable. [output. [local] [import. 1979-05-27 inf nan 0x1 \\u0000""".split() + [
    "= ", "{ ", " }", "\n", "# "]
GRAPHQL = """query mutation subscription fragment on { } ... $a String! Int Boolean [String] ID __typename __schema name types
    fields args input enumValues ofType \""" \\u ( )""".split() + ["@skip(if: ", "@include(if: ", "$a: ", "__type(name: ", "= 1", ", "]
HTTP = """/v1/ /v2/ ? & % HTTP/1.1 200 404 429 502""".split() + [
    "GET ", "POST ", "PATCH ", "PUT ", "DELETE ", "content-length: ", "transfer-encoding: chunked", "retry-after: ",
    "link: <", '>; rel="next"', "authorization: Bearer ", "expect: 100-continue"]

# Each target: fixed words, files whose literals are words, files whose words are words, and whether the wire has
# them in camel case, too.
TARGETS = {
    "answer": (JSON + HTTP, [], ["fuzz/corpus/answer/*", "providers/http/tests/it/*.toml"], False),
    "descriptor": (TOML, ["providers/http/src/descriptor/**/*.rs"],
                   ["providers/**/*.provider.toml", "docs/writing-a-provider.md"], False),
    "expression": (EXPRESSION, ["engine/src/expression/**/*.rs"], [], False),
    "graphql": (GRAPHQL, ["service/src/graphql/*.rs"], ["fuzz/corpus/graphql/*", "docs/service.md"], True),
    "job": (JSON + HTTP, ["service/src/jobs/**/*.rs", "service/src/workers/**/*.rs"], ["fuzz/corpus/job/*"], True),
    "journal": (JSON, ["engine/src/journal.rs", "engine/src/journal/**/*.rs", "engine/src/stored/**/*.rs"],
                ["fuzz/corpus/journal/*"], False),
    "name": (GRAPHQL, [], ["fuzz/corpus/name/*"], False),
    "plan": (JSON, ["engine/src/plan/**/*.rs", "engine/src/stored/**/*.rs"], ["fuzz/corpus/plan/*"], False),
    "rest": (JSON + HTTP, ["service/src/rest/**/*.rs", "service/src/resources/**/*.rs"], ["fuzz/corpus/rest/*"], True),
    "spec": (TOML + EXPRESSION, ["engine/src/config/**/*.rs", "engine/src/expression/functions/table.rs"],
             ["examples/**/*.toml", "docs/spec.md", "fuzz/corpus/spec/*"], False),
    "state": (JSON, ["engine/src/state.rs", "engine/src/stored/**/*.rs"], ["fuzz/corpus/state/*"], False),
    "variables": (TOML + JSON, [], ["fuzz/corpus/variables/*"], False),
    "words": (EXPRESSION, ["engine/src/address.rs", "engine/src/types.rs"], ["fuzz/corpus/words/*"], False),
}


def texts(patterns):
    """The texts of all files of these patterns; of pages, what they set as code."""
    for pattern in patterns:
        for file in sorted(HOUSE.glob(pattern)):
            if file.is_file():
                text = file.read_bytes().decode(errors="replace")
                code = re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL)
                yield "\n".join(code) if file.suffix == ".md" else text


def literals(patterns):
    """Literals without blanks, and the names of public fields, which files and answers have."""
    for text in texts(patterns):
        yield from re.findall(r'"([^\s"\\]{2,40})"', text)
        yield from re.findall(r"pub(?:\([a-z]+\))? ([a-z_]{3,30}):", text)


def words(patterns):
    for text in texts(patterns):
        yield from re.findall(r"[A-Za-z_$@][A-Za-z0-9_]{2,30}", text)


def camel(word):
    return re.sub(r"_([a-z])", lambda match: match.group(1).upper(), word)


def escaped(word):
    plain = lambda byte: 32 <= byte < 127 and chr(byte) not in '"\\'
    return "".join(chr(byte) if plain(byte) else f"\\x{byte:02x}" for byte in word.encode())


def dictionary(fixed, of_literals, of_words, in_camel):
    found = collections.Counter(literals(of_literals)) + collections.Counter(words(of_words))
    if in_camel:
        found += collections.Counter(camel(word) for word in found if "_" in word)
    known = dict.fromkeys(fixed + [word for word, _ in found.most_common(WORDS_MAX)])
    return [word for word in known if 0 < len(word.encode()) <= BYTES_MAX]


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HOUSE / "fuzz" / "artifacts" / "dictionaries"
    folder.mkdir(parents=True, exist_ok=True)
    for target, sources in TARGETS.items():
        known = dictionary(*sources)
        (folder / f"{target}.dict").write_text("".join(f'"{escaped(word)}"\n' for word in known))
        print(f"{target}: {len(known)} words")


if __name__ == "__main__":
    main()
