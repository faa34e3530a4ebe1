"""The command `seraphim`, as `python -m seraphim` too."""

import sys

from seraphim.machine import end_on_interrupt


def main() -> int:
    """Run it; see `seraphim.cli.main`."""
    end_on_interrupt()
    from seraphim import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
