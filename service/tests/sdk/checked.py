"""What the scripts of this folder check with."""


def check(name, found, expected):
    if found != expected:
        raise SystemExit(f"{name}: {found!r} is not {expected!r}")
    print("ok", name, flush=True)
