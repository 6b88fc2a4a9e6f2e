"""How the checks of this folder and of test/peers say what they found."""
import titan_job

MOST = 8  # lines of one check


def failed(name, check, *arguments):
    """Whether `check(*arguments)`, which returns what is wrong as lines, finds something, or a command that it runs fails; prints which."""
    try:
        wrong = check(*arguments)
    except titan_job.Failure as failure:
        wrong = [str(failure)]
    more = [f"and {len(wrong) - MOST} more"] if len(wrong) > MOST else []
    print(f"{'FAIL' if wrong else 'ok  '} {name}", *wrong[:MOST], *more, sep="\n    ", flush=True)
    return bool(wrong)
