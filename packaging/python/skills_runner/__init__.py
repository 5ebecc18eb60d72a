"""skills-runner is a program; this package finds it: `python -m skills_runner`."""

# Nothing is imported before `__main__` has left the folder that it is started in.
__all__ = ["find_binary"]


def find_binary():
    """The program's path, as the wheel that this package is from installed it."""
    import os
    import sysconfig

    package = os.path.dirname(os.path.abspath(__file__))
    above = os.path.dirname(package)
    folders = [
        # A venv, or the whole system.
        sysconfig.get_path("scripts"),
        # pip install --user
        sysconfig.get_path("scripts", scheme=_user_scheme()),
        # pip install --target FOLDER puts bin beside the package.
        os.path.join(above, "bin"),
        # pip install --prefix FOLDER: FOLDER/lib/pythonX.Y/site-packages
        os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(above))), "bin"),
    ]
    # What stands nearest to this package is what came with it.
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
