"""The files of pages, by version: an address that names the version of all files leads to the same file for ever.

So browsers keep them and do not ask again, and after an upgrade no old module meets a new one. Knows nothing of HTTP.
"""

import re
from hashlib import sha256
from importlib import resources
from pathlib import Path

WEB = Path(str(resources.files("seraphim") / "web"))

_VERSION = re.compile("[0-9a-f]{16}")
_REFERENCE = re.compile(r'(?<==)"([\w./-]+\.(?:css|js|svg))"')


class WebFiles:
    """The files, and the version of those that pages were last made with."""

    def __init__(self, folder: Path = WEB) -> None:
        """Prepare; nothing is read yet."""
        self.version = ""
        self._folder = folder

    def page(self, name: str) -> str:
        """Return a page whose references to files name their version, as the files are now."""
        content = sha256()
        for path in sorted(path for path in self._folder.rglob("*") if path.is_file()):
            content.update(f"{path.relative_to(self._folder)}:{path.stat().st_size}:".encode() + path.read_bytes())
        self.version = content.hexdigest()[:16]
        return _REFERENCE.sub(self._versioned, (self._folder / name).read_text())

    def _versioned(self, reference: re.Match[str]) -> str:
        return f'"static/{self.version}/{reference[1]}"' if (self._folder / reference[1]).is_file() else reference[0]

    def split(self, path: str) -> tuple[str, bool]:
        """Return a path without its version, and whether that is the current one."""
        version, _, rest = path.partition("/")
        return (rest, version == self.version) if _VERSION.fullmatch(version) and rest else (path, False)
