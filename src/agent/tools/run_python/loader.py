# Runs the copy of a script as Python runs the script itself. Arguments: the skill's
# folder, the module's name or nothing, the copy, the script's path and its own
# arguments. `__main__` has the content that it would have without this loader.
def run():
    import io
    import sys
    from io import open
    from os import environ, getcwd, path
    from _frozen_importlib_external import SourceFileLoader, SourcelessFileLoader, spec_from_file_location

    main = sys.modules["__main__"].__dict__
    flags = sys.flags
    own = path.dirname(sys.argv[0])
    _, skill, module, copy, script = sys.argv[:5]
    del main["run"], sys.argv[:4]
    is_copy = script == copy
    folder = None
    if module:
        file = sys.argv[0] = path.abspath(script)
        spec = spec_from_file_location(module, file)
        loader = spec.loader
        main.update(__spec__=spec, __package__=spec.parent, __cached__=spec.cached)
    elif is_copy:
        file = copy
        kind = SourcelessFileLoader if copy.endswith(".pyc") else SourceFileLoader
        loader = kind("__main__", file)
    else:
        file = path.join(getcwd(), script) if sys.version_info >= (3, 9) else script
        try:
            folder = path.dirname(path.realpath(script))
        except OSError:
            # Another process changes the path at the same time.
            folder = path.dirname(path.join(getcwd(), script))
        loader = SourceFileLoader("__main__", file)
    main.update(__file__=file, __loader__=loader)

    # Our value is for this process only; children of `multiprocessing` inherit the flag.
    is_safe = getattr(flags, "safe_path", False)
    if environ.get("PYTHONSAFEPATH") == "skills-runner":
        del environ["PYTHONSAFEPATH"]
        is_safe = is_safe and flags.ignore_environment
    # The standard library first, so that no module of a skill replaces one of its modules.
    standard = path.dirname(getattr(path, "__file__", "/")), "python%d%d.zip" % sys.version_info[:2], "lib-dynload"
    others = [entry for entry in sys.path if entry != own]
    first = [entry for entry in others if entry in standard or path.basename(str(entry)) in standard]
    skills = [] if is_safe or folder in (None, skill) else [folder]
    sys.path[:] = first + skills + [skill] + [entry for entry in others if entry not in first]

    def report(kind, error, trace):
        # Replaces the hook, to leave out the two frames of this file.
        sys.excepthook = hook
        error.__traceback__ = trace.tb_next.tb_next
        # Up to 3.12 Python opens the lines that it quotes with this.
        before, io.open = io.open, lambda name, *rest: open(copy if name == file else name, *rest)
        hook(kind, error, error.__traceback__)
        io.open = before

    try:
        if copy.endswith(".pyz"):
            import runpy

            sys.path.insert(0, copy)
            return runpy._run_module_as_main("__main__", False)
        if module:
            __import__(spec.parent)
        if copy.endswith(".pyc"):
            code = loader.get_code("__main__")
        else:
            with open(copy, "rb") as opened:
                code = compile(opened.read(), file, "exec", 0, True)
        exec(code, main)
    except SystemExit:
        raise
    except BaseException as error:
        hook = getattr(sys, "excepthook", sys.__excepthook__)
        sys.excepthook = report
        lines = []
        try:
            import linecache

            lines = linecache.getlines(copy)
            linecache.cache[file] = len(lines), None, lines, file
        except Exception:
            pass
        if not error.__traceback__.tb_next and isinstance(error, SyntaxError):
            # Python read the line from the script's path, which may have changed.
            error.text = "".join(lines[(error.lineno or 0) - 1 : error.lineno]) or None
        raise


type(run)(run.__code__, {"__builtins__": __builtins__})()
