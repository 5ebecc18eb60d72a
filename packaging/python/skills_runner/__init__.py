"""Finds and runs the program skills-runner: `python -m skills_runner`."""

# Nothing is imported here: `__main__` first removes the working folder from `sys.path`.
__all__ = ["find_binary"]


def find_binary():
    """The path of the program that this package's wheel installed."""
    import os
    import sysconfig

    package = os.path.dirname(os.path.abspath(__file__))
    above = os.path.dirname(package)
    folders = [
        # A venv, or the system.
        sysconfig.get_path("scripts"),
        # pip install --user
        sysconfig.get_path("scripts", scheme=_user_scheme()),
        # pip install --target FOLDER puts bin next to the package.
        os.path.join(above, "bin"),
        # pip install --prefix FOLDER: FOLDER/lib/pythonX.Y/site-packages
        os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(above))), "bin"),
    ]
    # Folders near this package come first: they are from the same installation.
    def is_elsewhere(folder):
        return not package.startswith(os.path.join(os.path.dirname(folder), ""))

    for folder in sorted(folders, key=is_elsewhere):
        path = os.path.join(folder, "skills-runner" + (sysconfig.get_config_var("EXE") or ""))
        if os.path.isfile(path):
            return path
    raise FileNotFoundError(
        "failed to find the program `skills-runner` of this package in " + ", ".join(folders)
    )


def _user_scheme():
    import sys
    import sysconfig

    if sys.version_info >= (3, 10):
        return sysconfig.get_preferred_scheme("user")
    return "posix_user"
