#!/usr/bin/env python3
"""Runs the Python snippets of README and book: those of a page one after the other, in a new folder."""

import os
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```python([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def main() -> int:
    snippets, wrong = 0, []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs" / "book" / "src").glob("*.md"))]:
        text = page.read_text()
        names = {"__name__": "__main__"}
        for match in FENCE.finditer(text):
            if "shown" in match.group(1):
                continue
            snippets += 1
            line = text.count("\n", 0, match.start()) + 2
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                os.symlink(ROOT / "examples", "examples")
                try:
                    exec(compile("\n" * (line - 1) + match.group(2), str(page), "exec"), names)
                except Exception as error:  # noqa: BLE001: the page is named with any error
                    wrong.append(f"{page.relative_to(ROOT)}:{line}: {type(error).__name__}: {error}")
                finally:
                    os.chdir(ROOT)
    for text in wrong:
        print(text, file=sys.stderr)
    print(f"snippets: {snippets} in Python, {len(wrong)} wrong")
    return 1 if wrong or not snippets else 0


if __name__ == "__main__":
    sys.exit(main())
