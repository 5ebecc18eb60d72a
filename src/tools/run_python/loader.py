# Runs `script.py` beside it, which is what was read of a skill's script, as Python
# runs the script itself. Arguments: the module's name or nothing, the script's path
# and its own arguments. What the script finds in `__main__` is what it would find.
def run():
    import io
    import sys
    from io import open
    from os import getcwd, path
    from _frozen_importlib_external import SourceFileLoader, spec_from_file_location

    main = sys.modules["__main__"].__dict__
    copy = path.join(path.dirname(sys.argv[0]), "script.py")
    _, module, script = sys.argv[:3]
    del main["run"], sys.argv[:2]
    if module:
        folder = getcwd()
        file = sys.argv[0] = path.abspath(script)
        spec = spec_from_file_location(module, file)
        loader = spec.loader
        main.update(__spec__=spec, __package__=spec.parent, __cached__=spec.cached)
    else:
        file = path.join(getcwd(), script) if sys.version_info >= (3, 9) else script
        try:
            folder = path.dirname(path.realpath(script))
        except OSError:
            # Somebody changes it meanwhile.
            folder = path.dirname(path.join(getcwd(), script))
        loader = SourceFileLoader("__main__", file)
    main.update(__file__=file, __loader__=loader)
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder

    def tell(kind, error, trace):
        # In the place of the hook: without the two frames of this file.
        sys.excepthook = hook
        error.__traceback__ = trace.tb_next.tb_next
        # Up to 3.12 Python opens by this what it quotes.
        before, io.open = io.open, lambda name, *rest: open(copy if name == file else name, *rest)
        hook(kind, error, error.__traceback__)
        io.open = before

    try:
        if module:
            __import__(spec.parent)
        with open(copy, "rb") as opened:
            code = compile(opened.read(), file, "exec", 0, True)
        exec(code, main)
    except SystemExit:
        raise
    except BaseException as error:
        hook = getattr(sys, "excepthook", sys.__excepthook__)
        sys.excepthook = tell
        lines = []
        try:
            import linecache

            lines = linecache.getlines(copy)
            linecache.cache[file] = len(lines), None, lines, file
        except Exception:
            pass
        if not error.__traceback__.tb_next and isinstance(error, SyntaxError):
            # Python has looked for it by name.
            error.text = "".join(lines[(error.lineno or 0) - 1 : error.lineno]) or None
        raise


type(run)(run.__code__, {"__builtins__": __builtins__})()
