#!/usr/bin/env python3
"""Evaluate arithmetic expressions exactly.

    calc.py eval "1/3 + 1/6"                                 prints 0.5
    calc.py eval "net = 1499.90" "round(net * 1.19, 2)"      names carry over

Numbers are fractions, so 0.1 + 0.2 is 0.3. Roots, logarithms and fractions that do not
end are rounded, and the output then says so. Without arguments, each line of stdin is an
expression. To import: evaluate, show. Mistakes raise ValueError.
"""

import argparse
import ast
import decimal
import json
import math
import operator
import re
import sys
from decimal import Decimal
from fractions import Fraction

MAX_CHARACTERS = 2_000  # of an expression
MAX_BITS = 13_000  # of a number: about 3,900 digits
SPELLINGS = str.maketrans({"^": "**", "×": "*", "÷": "/", "−": "-", "π": "pi"})
CONSTANTS = {"pi": Decimal("3.1415926535897932384626433832795028841971693993751058209749445923")}


def evaluate(text, names=None, digits=20):
    """Return the value of an expression: a Fraction (exact) or a Decimal (rounded).

    An assignment such as "net = 12.50" adds its name to the dict `names`.
    """
    names = {} if names is None else names
    text = " ".join(text.split())
    target, source = re.fullmatch(r"(?:([A-Za-z_]\w*) ?=(?!=) ?)?(.*)", text).groups()
    source = source.translate(SPELLINGS)
    try:
        if len(source) > MAX_CHARACTERS:
            raise ValueError(f"it has over {MAX_CHARACTERS} characters")
        tree = ast.parse(source, mode="eval").body
        with decimal.localcontext(decimal.Context(prec=digits + 30, Emax=99_999, Emin=-99_999)):
            value = _value(tree, source, {**CONSTANTS, **names})
        if target:
            names[target] = value
        return value
    except ZeroDivisionError:
        cause = "division by zero"
    except ArithmeticError:
        cause = "the result is undefined or too large"
    except TypeError:
        cause = "a function does not take that many values"
    except (RecursionError, MemoryError):
        cause = "it is nested too deeply; sum(a, b, c) takes any number of terms"
    except (SyntaxError, ValueError) as error:
        cause = error.args[0]
    raise ValueError(f"failed to evaluate expression `{text[:60]}`: {cause}")


def _value(node, source, names):
    """Return the value of a node of the syntax tree. What is not named here is refused."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        value = node.value
    elif isinstance(node, ast.Constant) and type(node.value) is float:
        typed = Decimal(ast.get_source_segment(source, node))  # the float has lost digits
        if abs(typed.adjusted()) > 4_000:
            raise ValueError("an exponent is over 4000")
        value = Fraction(typed)
    elif isinstance(node, ast.Name) and node.id in names:
        value = names[node.id]
    elif isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
        value = OPERATORS[type(node.op)](_value(node.operand, source, names))
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        sides = [_value(side, source, names) for side in (node.left, node.right)]
        value = OPERATORS[type(node.op)](*_alike(sides))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if node.func.id not in FUNCTIONS:
            raise ValueError(f"unknown function `{node.func.id}`; known: {', '.join(FUNCTIONS)}")
        arguments = [_value(argument, source, names) for argument in node.args]
        value = FUNCTIONS[node.func.id](*_alike(arguments))
    else:
        raise ValueError(f"`{ast.get_source_segment(source, node)[:60]}` is not understood")
    if isinstance(value, Decimal):
        return value
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise ValueError("a number has over 3900 digits")
    return Fraction(value)


def _alike(values):
    """Return the numbers as they are if all are fractions, otherwise all as Decimals."""
    return values if all(isinstance(v, Fraction) for v in values) else list(map(_decimal, values))


def _decimal(value):
    return value if isinstance(value, Decimal) else Decimal(value.numerator) / value.denominator


def _power(base, exponent):
    """Return a power: exact if the exponent is whole and the result not too long."""
    if isinstance(base, Fraction) and exponent.denominator == 1:
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if bits * abs(exponent) <= MAX_BITS:
            return base**exponent.numerator
    return _decimal(base) ** _decimal(exponent)


def _root(value, degree=2):
    """Return a root: exact if it is a short fraction, otherwise rounded."""
    root = _decimal(value).sqrt() if degree == 2 else _decimal(value) ** (1 / _decimal(degree))
    exact = Fraction(root).limit_denominator(10**9)
    can_be_exact = isinstance(value, Fraction) and degree in range(1, 65)
    return exact if can_be_exact and exact ** int(degree) == value else root


def _round(value, places=0):
    """Round halves away from zero, as spreadsheets do."""
    scale = Fraction(10) ** max(-1_000, min(int(places), 1_000))
    whole = math.floor(abs(Fraction(value)) * scale + Fraction(1, 2))
    return (whole if value >= 0 else -whole) / scale


def _count(value):
    """Return a whole number that is small enough for factorials."""
    if not 0 <= value <= 1_000 or value != int(value):
        raise ValueError(f"a whole number from 0 to 1000 is needed, not {show(value)}")
    return int(value)


OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: _power,
    ast.Div: operator.truediv, ast.FloorDiv: lambda a, b: math.floor(a / b),
    ast.Mod: lambda a, b: a - b * math.floor(a / b), ast.USub: operator.neg, ast.UAdd: operator.pos,
}
FUNCTIONS = {
    "abs": abs, "round": _round, "floor": math.floor, "ceil": math.ceil, "sqrt": _root,
    "root": _root, "min": lambda *v: min(v), "max": lambda *v: max(v), "sum": lambda *v: sum(v),
    "mean": lambda *v: sum(v) / len(v), "exp": lambda v: _decimal(v).exp(),
    "ln": lambda v: _decimal(v).ln(), "log10": lambda v: _decimal(v).log10(),
    "log": lambda v, base: _decimal(v).ln() / _decimal(base).ln(),
    "comb": lambda n, k: math.comb(_count(n), _count(k)),
    "factorial": lambda n: math.factorial(_count(n)),
}


def is_exact(value):
    """Tell whether `show` writes the value without rounding."""
    return not isinstance(value, Decimal) and 10**400 % Fraction(value).denominator == 0


def show(value, digits=20, places=None):
    """Return a value as text, rounded to `digits` digits or to `places` behind the point."""
    with decimal.localcontext(decimal.Context(prec=5_000)) as context:
        if places is not None and abs(value) < 10**digits:
            return f"{_decimal(_round(value, places)):.{places}f}"
        context.prec = 5_000 if is_exact(value) else digits
        number = (+_decimal(value)).normalize()
    return f"{number:f}" if is_exact(value) or abs(number.adjusted()) < 25 else str(number)


def main():
    """Evaluate the expressions of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("expressions", nargs="*", metavar="eval EXPRESSION")
    parser.add_argument("--digits", type=int, default=20, choices=range(1, 51), metavar="1..50")
    parser.add_argument("--places", type=int, choices=range(51), metavar="0..50")
    parser.add_argument("--json", action="store_true", help="values as text, so no digit is lost")
    # An expression such as -x+4 is no option.
    words = [f" {w}" if re.match(r"-(?!-[a-z]|h$)", w) else w for w in sys.argv[1:]]
    options = parser.parse_intermixed_args(words)
    lines = options.expressions
    if lines[:1] == ["eval"]:
        del lines[0]
    lines = lines or sys.stdin.buffer.read().decode("utf-8-sig", "replace").splitlines()
    lines = [line.strip() for line in lines if line.strip()]
    if not lines:
        sys.exit("calc.py: failed to read expressions: none in the arguments or on stdin")
    try:
        names = {}
        values = [evaluate(line, names, options.digits) for line in lines]
    except ValueError as error:
        sys.exit(f"calc.py: {error}")
    texts = [show(value, options.digits, options.places) for value in values]
    if options.json:
        results = [{"expression": line, "value": text, "exact": is_exact(value)}
                   for line, value, text in zip(lines, values, texts)]
        print(json.dumps(results, ensure_ascii=False))
        return
    for line, value, text in zip(lines, values, texts):
        sign = "->" if "=" in line else "="
        if not is_exact(value) and options.places is None:
            is_short = isinstance(value, Fraction) and len(str(value)) <= 40
            text += f" (rounded; exactly {value})" if is_short else " (rounded)"
        print(text if len(lines) == 1 else f"{line} {sign} {text}")


if __name__ == "__main__":
    main()
