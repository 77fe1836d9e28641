"""The library's story on real data: `python examples/digits.py --help`."""

import sys
from pathlib import Path

# Run as a script, Python looks for modules beside this file only, not at the repository's root.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples.digits_story.main import main
from tacit.command import forgiving_stdout

if __name__ == "__main__":
    with forgiving_stdout():
        sys.exit(main())
