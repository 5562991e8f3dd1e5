#!/usr/bin/env python3
"""The share of each kind of operators in the samples of workers' threads, by the call stacks that perf has taken.

    perf record -F 1999 --call-graph dwarf,16384 -o q4.perf PROGRAM --bench nexmark q4
    benches/benches/operators/perf.py q4.perf

PROGRAM is the benchmark `operators`, built with line tables. The kind of a sample is that of the first function of an operator below
timely's call of it, with what was inlined into that: `joins` is a join, `reductions` an aggregate or a ranking, `map` a map, `arrangement`
sorts and keeps rows, for an index as for an aggregate. What is in no operator, or has no stack, as the samples in functions of libc that
copy and compare, is `other`. Needs perf, readelf and llvm-symbolizer.
"""

import collections
import pathlib
import re
import subprocess
import sys

# The first that a function's name has.
KINDS = [
    ("join", r"alluvium_dataflow::joins"),
    ("aggregate", r"alluvium_dataflow::reductions"),
    ("map", r"alluvium_dataflow::map\b"),
    ("arrangement", r"alluvium_dataflow::state|differential_dataflow::operators::arrange"),
    ("stream", r"alluvium_dataflow::movement|alluvium_dataflow::time"),
]
# A thread of a worker, and what calls operators on it.
THREAD, CALLER = re.compile(r"alluvium-\d+$"), re.compile(r"OperatorCore<.*Schedule>::schedule")
FRAME = re.compile(r"\s+([0-9a-f]+) (.*) \((.*)\)$")


def stacks(recorded):
    """The stacks of workers' samples, the innermost frame first."""
    script = ["perf", "script", "-i", recorded, "--no-inline", "-F", "comm,ip,sym,dso"]
    text = subprocess.run(script, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    for sample in text.split("\n\n"):
        thread, *frames = sample.strip("\n").split("\n")
        if THREAD.match(thread.strip()):
            yield [frame.groups() for frame in map(FRAME.match, frames) if frame]


def segments(program):
    """Where the parts of a program are in its file and in memory."""
    headers = subprocess.run(["readelf", "-lW", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    loads = re.findall(r"LOAD\s+(0x\w+) (0x\w+) 0x\w+ (0x\w+)", headers)
    return [tuple(int(number, 16) for number in load) for load in loads]


def names(program, addresses):
    """What is at each address of a program: the function and those inlined into it."""
    parts = segments(program)

    def in_memory(offset):
        return next((offset - start + place for start, place, length in parts if start <= offset < start + length), offset)

    # A return address is behind the call.
    asked = "".join(f"{in_memory(int(address, 16)) - 1:#x}\n" for address in addresses)
    symbolizer = ["llvm-symbolizer", f"--obj={program}", "--inlines"]
    text = subprocess.run(symbolizer, input=asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    return dict(zip(addresses, text.split("\n\n")))


def main():
    samples = list(stacks(sys.argv[1]))
    called, programs = [], set()
    for sample in samples:
        callers = [number for number, (_, name, _) in enumerate(sample) if CALLER.search(name)]
        called.append([ip for ip, _, _ in sample[: callers[0]]] if callers else [])
        programs.update(sample[number][2] for number in callers)
    program = next(iter(programs))
    known = names(program, sorted({ip for frames in called for ip in frames}))

    def kind(frames):
        for ip in reversed(frames):
            for name, pattern in KINDS:
                if re.search(pattern, known.get(ip, "")):
                    return name
        return "other"

    counted = collections.Counter(map(kind, called))
    other = counted.pop("other", 0)
    print(f"{pathlib.Path(sys.argv[1]).name}: {len(samples)} samples, {other} of them other\n\n| kind | samples | share |\n|---|---|---|")
    for name, count in counted.most_common():
        print(f"| {name} | {count} | {count / (len(samples) - other):.3f} |")


main()
