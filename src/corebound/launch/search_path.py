"""The folders in which a scenario's environments and modules are searched."""

from pathlib import Path

# A repository has the first, a project the second.
_ROOT_MARKERS = (".git", "pyproject.toml")


def folders_upward(folder: Path) -> tuple[Path, ...]:
    """A folder and those that contain it, up to the root of its repository or project.

    Outside of any, only the folder itself: what lies above it belongs to somebody else.
    """
    above = (folder, *folder.parents)
    for marker in _ROOT_MARKERS:
        for index, candidate in enumerate(above):
            if (candidate / marker).exists():
                return above[: index + 1]
    return (folder,)


def module_folders(folder: Path) -> tuple[Path, ...]:
    """The folders whose modules a scenario may import after all others: those above, and `src`.

    Args:
        folder: The scenario's own folder, which comes first of all and is not among them.
    """
    upward = folders_upward(folder)
    candidates = (place for above in upward for place in (above, above / "src"))
    return tuple(place for place in candidates if place != folder and place.is_dir())
