#!/usr/bin/env python3
"""Puts the figures of bench-results/saxpy.json into docs/book/src/saxpy.md, between its two marks.

    onbeat bench saxpy --quantum 4,8,16,32,64KiB --peers=peers --format json > bench-results/saxpy.json
    bench-results/page.py            writes the page
    bench-results/page.py --check    checks that the page agrees with the figures
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "book" / "src" / "saxpy.md"
BEGIN, END = "<!-- figures of bench-results/saxpy.json -->\n", "<!-- end of figures -->\n"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


class Found:
    def __init__(self, text: str):
        self.all = json.loads(text)
        self.figures, self.parameters = self.all["figures"], self.all["parameters"]

    def value(self, name: str, digits: int | None = 0) -> str:
        figure = self.figures.get(name)
        if figure is None:
            return "-"
        value = figure["value"]
        if digits is None:
            digits = 2 if value < 9.995 else 1
        return f"{value:.{digits}f}"

    def by_kernels(self, title: str, rows: list[tuple[str, str]], digits: int | None = 0) -> str:
        """A row for each name with `{m}` in it, a column for each number of kernels; nothing where all are missing."""
        kernels = self.parameters["kernels"]
        lines = [[label, *(self.value(name.replace("{m}", str(m)), digits) for m in kernels)] for label, name in rows]
        lines = [line for line in lines if any(cell != "-" for cell in line[1:])]
        return title + "\n\n" + table(["M", *map(str, kernels)], lines) + "\n" if lines else ""

    def quanta(self) -> list[tuple[str, str]]:
        return [(f"{size // 1024} KiB", f"{size // 1024}k") for size in self.parameters["quanta"]]

    def peers(self) -> list[tuple[str, str]]:
        names = []
        for peer in self.parameters["peers"]:
            names.append((f"{peer['name']} {peer['version']}, {peer['variant']}: {peer['how']}", f"{peer['name']}.{peer['variant']}"))
        return names


def page(found: Found) -> str:
    machine, parameters = found.all["machine"], found.parameters
    others = found.figures.get("machine.others", {}).get("value")
    text = (
        f"One run on {machine['cpu_model']}, {machine['cores_online']} cores of a virtual machine ({machine['virtualisation']}), "
        f"L1d {machine['l1d_bytes'] // 1024} KiB, L2 {machine['l2_bytes'] // 1024} KiB, Linux {machine['kernel']}; onbeat "
        f"{parameters['version']} ({parameters['profile']}), medians of {parameters['rounds']} rounds of {parameters['seconds']} s, "
        f"idle workers {parameters['idle']}"
    )
    text += f"; others used {others:.1f} % of the machine" if others is not None else ""
    again = found.value("machine.again")
    text += f"; {again} measurements were repeated because the machine was disturbed.\n" if again != "-" else ".\n"
    text += "The values of each round are in `bench-results/saxpy.json`.\n\n"
    quanta = found.quanta()
    text += "**The kernel alone**, in place and out of place, Gsamples/s:\n\n" + table(
        ["", *(size for size, _ in quanta)],
        [[form.replace("_", " "), *(found.value(f"bare.kernel.q{q}.{form}.rate", 1) for _, q in quanta)] for form in ("in_place", "out_of_place")],
    ) + "\n"
    rows = lambda pattern, form: [(size, pattern.replace("{q}", q).replace("{form}", form)) for size, q in quanta]  # noqa: E731
    text += found.by_kernels("**One core, `greedy`, in place**: % of the kernel / M", rows("saxpy.greedy.n1.m{m}.q{q}.{form}.share", "in_place"))
    text += found.by_kernels("The same with an operator that a user wrote:", rows("saxpy.greedy.n1.m{m}.q{q}.{form}.own.share", "in_place"))
    text += found.by_kernels("**One core, `greedy`, out of place**: % of the bare chain", rows("saxpy.greedy.n1.m{m}.q{q}.{form}.of_bare", "out_of_place"))
    text += found.by_kernels("**Two cores, `replicated`**, ends in ranges, in place: % of twice our own rate on one core", rows("saxpy.replicated.n2.m{m}.q{q}.{form}.of_one_core", "in_place"))
    text += found.by_kernels("The same: % of the fair line", rows("saxpy.replicated.n2.m{m}.q{q}.{form}.share", "in_place"))
    text += found.by_kernels("**Two cores, `replicated`, ends serial and in order**: % of the fair line", rows("saxpy.replicated_in_order.n2.m{m}.q{q}.{form}.share", "in_place"))
    for buffers in (3, 8):
        name = "saxpy.pinned.n2.m{m}.q{q}.b%d.{form}" % buffers
        text += found.by_kernels(f"**Two cores, `pinned` in order**, {buffers} chunks: Gsamples/s", rows(name + ".rate", "in_place"), None)
        text += found.by_kernels("The same: % of the bare hand-over", rows(name + ".of_bare", "in_place"))
    text += found.by_kernels("**Two cores, `event`**, in place: Gsamples/s", rows("saxpy.event.n2.m{m}.q{q}.{form}.rate", "in_place"), None)
    text += found.by_kernels("For comparison, `greedy` on one core: Gsamples/s", rows("saxpy.greedy.n1.m{m}.q{q}.{form}.rate", "in_place"), None)
    for cores in (1, 2):
        peers = [(label, f"peer.{name}.n{cores}.m{{m}}.rate") for label, name in found.peers()]
        text += found.by_kernels(f"**Other runtimes, {cores} core{'s' if cores > 1 else ''}**: Gsamples/s", peers, None)
    notes = found.all["notes"]
    text += "".join(f"- {note}\n" for note in notes) + ("\n" if notes else "")
    return text


def main() -> int:
    found = Found((ROOT / "bench-results" / "saxpy.json").read_text())
    old = PAGE.read_text()
    before, rest = old.split(BEGIN)
    _, after = rest.split(END)
    new = before + BEGIN + "\n" + page(found) + END + after
    if "--check" in sys.argv[1:]:
        if new != old:
            print("docs/book/src/saxpy.md differs from bench-results/saxpy.json: run bench-results/page.py", file=sys.stderr)
        return int(new != old)
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
