#!/usr/bin/env python3
"""Exact arithmetic and statistics.

    calc.py eval "1/3 + 1/6"                         0.5
    calc.py eval "net = 1499.90" "net * 1.19"        names carry over
    calc.py stats 3 4 8.5                            or --file FILE --column NAME, or stdin
    calc.py regress 1,2 2,4.1 3,5.9 --at 4           or --file FILE --x NAME --y NAME

Numbers are fractions of whole numbers, so 0.1 + 0.2 is 0.3. Only roots, logarithms and
angles are rounded, to --digits significant digits, and then the output says so.
Importable: evaluate, show, describe, regress, read_columns. Standard library only.
"""
import argparse
import ast
import contextlib
import csv
import decimal
import itertools
import json
import math
import operator
import os
import re
import sys
import warnings
from array import array
from decimal import Decimal
from fractions import Fraction

# Bounds: what is larger ends with a message, not with a hung process.
MAX_EXPRESSION_CHARACTERS = 20_000
MAX_DEPTH = 60
MAX_RESULT_DIGITS = 20_000
MAX_PRECISION_DIGITS = 1_000
MAX_VALUES = 10_000_000
MAX_EXPONENT = 400
MAX_FACTORIAL = 5_000
BATCH = 5_000
MAX_PRIME = 3_317_044_064_679_887_385_961_981

MAX_BITS = int(MAX_RESULT_DIGITS * 3.3219281)
GUARD_DIGITS = 15
DEFAULT_DIGITS = 20
COMMANDS = ("eval", "stats", "regress")


class CalcError(Exception):
    """What the caller can mend; its text is one line."""


# ---------------------------------------------------------------- expressions


def evaluate(expression, names=None, digits=DEFAULT_DIGITS):
    """Return the value of `expression`: a Fraction (exact), a Decimal (rounded) or a bool.

    `names` maps names to values; an assignment such as "net = 12.50" adds to it.
    """
    _allow_long_integers()
    names = {} if names is None else names
    if len(expression) > MAX_EXPRESSION_CHARACTERS:
        raise CalcError(f"the expression is longer than {MAX_EXPRESSION_CHARACTERS} characters")
    source = _tidy(expression)
    target = re.match(r"([A-Za-z_]\w*)\s*=(?!=)", source)
    if target:
        if target.group(1) in CONSTANTS or target.group(1) in FUNCTIONS:
            raise CalcError(f"{target.group(1)} is a built-in name; choose another")
        source = source[target.end():].strip()
    context = decimal.Context(
        prec=digits + GUARD_DIGITS, Emax=999_999_999, Emin=-999_999_999,
        traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow])
    with decimal.localcontext(context):
        try:
            value = _Evaluator(source, names, digits).visit(_parse(source), 0)
        except ZeroDivisionError:
            raise CalcError(f"division by zero in {_shorten(expression)}") from None
        except decimal.Overflow:
            raise CalcError(f"the result of {_shorten(expression)} is too large") from None
        except decimal.InvalidOperation:
            raise CalcError(f"{_shorten(expression)} has no value that can be given to {digits} digits") from None
        except RecursionError:
            raise CalcError("the expression is nested too deeply") from None
    if isinstance(value, list):
        raise CalcError("commas make a list: write 1234 for 1,234, or use sum(…) or mean(…)")
    if target:
        names[target.group(1)] = value
    return value


def _tidy(expression):
    for foreign, own in (("^", "**"), ("×", "*"), ("·", "*"), ("÷", "/"), ("−", "-"), ("π", "pi")):
        expression = expression.replace(foreign, own)
    expression = " ".join(expression.split())
    if not expression:
        raise CalcError("the expression is empty")
    if not expression.isascii():
        strange = next(character for character in expression if ord(character) > 127)
        raise CalcError(f"unexpected character {strange!r} in {_shorten(expression)}")
    return expression


def _parse(source):
    depth = deepest = 0
    for character in source:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH or re.search(r"(?:[-+~] ?){%d}" % MAX_DEPTH, source):
        raise CalcError("the expression is nested too deeply")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source, mode="eval").body
    except SyntaxError as error:
        place = f" at column {error.offset}" if error.offset else ""
        raise CalcError(f"cannot read {_shorten(source)}: invalid syntax{place}") from None
    except (ValueError, MemoryError, RecursionError):
        raise CalcError(f"cannot read {_shorten(source)}: too many terms; sum(a, b, c) takes any number") from None


class _Evaluator:
    """Walks a syntax tree; knows numbers, operators and the functions below, and nothing else."""

    def __init__(self, source, names, digits):
        self.source, self.names, self.digits = source, names, digits

    def visit(self, node, depth):
        if depth > MAX_DEPTH:
            raise CalcError("the expression is nested too deeply")
        if isinstance(node, ast.Constant):
            return self.literal(node)
        if isinstance(node, ast.Name):
            return self.name(node.id)
        if isinstance(node, ast.BinOp):
            chain = []
            while isinstance(node, ast.BinOp):  # long sums lean to the left: a loop, not recursion
                chain.append(node)
                node = node.left
            value = self.visit(node, depth + 1)
            for parent in reversed(chain):
                value = _binary(type(parent.op), value, self.visit(parent.right, depth + 1))
            return value
        if isinstance(node, ast.UnaryOp):
            value = _number(self.visit(node.operand, depth + 1))
            if isinstance(node.op, ast.USub):
                return -value
            if isinstance(node.op, ast.UAdd):
                return value
            if isinstance(node.op, ast.Invert):
                return Fraction(~_whole(value, "~"))
        if isinstance(node, ast.Compare):
            return self.compare(node, depth)
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self.visit(item, depth + 1) for item in node.elts]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            function = FUNCTIONS.get(node.func.id)
            if function is None:
                raise CalcError(f"unknown function {node.func.id}; known: {', '.join(sorted(FUNCTIONS))}")
            return self.call(node.func.id, function, [self.visit(item, depth + 1) for item in node.args])
        raise CalcError(f"{type(node).__name__} is not arithmetic; numbers, operators and functions are")

    def literal(self, node):
        if isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
            raise CalcError(f"{node.value!r} is not a number")
        if isinstance(node.value, int):
            return Fraction(node.value)
        # The float is only a rounded copy: the digits as typed are the number.
        text = self.source[node.col_offset:node.end_col_offset].replace("_", "")
        exponent = re.search(r"[eE]([+-]?\d+)$", text)
        if exponent and abs(int(exponent.group(1))) > MAX_RESULT_DIGITS:
            raise CalcError(f"the exponent of {_shorten(text)} is over {MAX_RESULT_DIGITS}")
        return Fraction(text)

    def name(self, name):
        if name in self.names:
            return self.names[name]
        if name in CONSTANTS:
            return CONSTANTS[name]()
        known = sorted(self.names) + sorted(CONSTANTS)
        raise CalcError(f"unknown name {name}; known: {', '.join(known)}")

    def compare(self, node, depth):
        left, holds = _number(self.visit(node.left, depth + 1)), True
        for kind, right in zip(node.ops, node.comparators):
            right = _number(self.visit(right, depth + 1))
            test = COMPARISONS.get(type(kind))
            if test is None:
                raise CalcError("only < <= > >= == != compare")
            sides = (left, right)
            if isinstance(left, Decimal) or isinstance(right, Decimal):
                with decimal.localcontext() as context:  # rounded values are compared as they are shown
                    context.prec = self.digits
                    sides = (+_decimal(left), +_decimal(right))
            holds = holds and test(*sides)
            left = right
        return holds

    def call(self, name, function, values):
        try:
            return _bounded(function(*values))
        except TypeError:
            raise CalcError(f"{name} does not take {len(values)} such value{'s' * (len(values) != 1)}") from None


COMPARISONS = {
    ast.Lt: lambda a, b: a < b, ast.LtE: lambda a, b: a <= b, ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b, ast.Eq: lambda a, b: a == b, ast.NotEq: lambda a, b: a != b,
}


def _binary(kind, left, right):
    left, right = _number(left), _number(right)
    if kind is ast.Pow:
        return _power(left, right)
    if kind in (ast.BitAnd, ast.BitOr, ast.LShift, ast.RShift):
        return _bits(kind, left, right)
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        left, right = _decimal(left), _decimal(right)
    if kind in (ast.Div, ast.FloorDiv, ast.Mod) and right == 0:
        raise ZeroDivisionError
    if kind is ast.Add:
        return _bounded(left + right)
    if kind is ast.Sub:
        return _bounded(left - right)
    if kind is ast.Mult:
        return _bounded(left * right)
    if kind is ast.Div:
        return _bounded(left / right)
    if kind in (ast.FloorDiv, ast.Mod):
        whole = Fraction(math.floor(left / right)) if isinstance(left, Fraction) else None
        if whole is None:
            whole = (left / right).to_integral_value(decimal.ROUND_FLOOR)
        return whole if kind is ast.FloorDiv else _bounded(left - whole * right)
    raise CalcError("unknown operator; + - * / // % ** & | << >> are known")


def _bits(kind, left, right):
    left, right = _whole(left, "a bit operator"), _whole(right, "a bit operator")
    if kind is ast.BitAnd:
        return Fraction(left & right)
    if kind is ast.BitOr:
        return Fraction(left | right)
    if not 0 <= right <= MAX_BITS:
        raise CalcError(f"a shift must lie between 0 and {MAX_BITS}")
    return _bounded(Fraction(left << right if kind is ast.LShift else left >> right))


def _power(base, exponent):
    if isinstance(base, Fraction) and isinstance(exponent, Fraction):
        if base == 0 and exponent < 0:
            raise ZeroDivisionError
        if exponent.denominator == 1:
            return _whole_power(base, exponent.numerator)
        if base < 0:
            raise CalcError("a negative number has no real fractional power; root(x, n) takes odd roots")
        if base == 0:
            return Fraction(0)
        if exponent.denominator <= 64:
            root = _exact_root(base, exponent.denominator)
            if root is not None:
                return _whole_power(root, exponent.numerator)
    base, exponent = _decimal(base), _decimal(exponent)
    if base < 0 and exponent != exponent.to_integral_value():
        raise CalcError("a negative number has no real fractional power; root(x, n) takes odd roots")
    if base == 0 and exponent < 0:
        raise ZeroDivisionError
    return base ** exponent


def _whole_power(base, exponent):
    if base in (0, 1, -1):
        return Fraction(base ** (exponent if exponent >= 0 else exponent % 2))
    bits = max(abs(base.numerator).bit_length(), base.denominator.bit_length())
    if bits * abs(exponent) > 2 * MAX_BITS:
        logarithm = _decimal(abs(base)).log10() * exponent
        power = logarithm.to_integral_value(decimal.ROUND_FLOOR)
        with decimal.localcontext() as context:
            context.prec = 6
            about = f"{+(Decimal(10) ** (logarithm - power))}e{power}" if abs(power) < 10 ** 12 else "beyond all bounds"
        raise CalcError(f"the power is too long to write exactly (limit {MAX_RESULT_DIGITS} digits); "
                        f"its size is about {about}; powmod(a, b, m) gives remainders")
    return _bounded(base ** exponent)


def _exact_root(value, degree):
    """Return the exact positive root of a positive Fraction, or None."""
    top, bottom = _integer_root(value.numerator, degree), _integer_root(value.denominator, degree)
    if top ** degree == value.numerator and bottom ** degree == value.denominator:
        return Fraction(top, bottom)
    return None


def _integer_root(value, degree):
    if degree == 2:
        return math.isqrt(value)
    if value < 2:
        return value
    guess = 1 << -(-value.bit_length() // degree)
    while True:
        better = ((degree - 1) * guess + value // guess ** (degree - 1)) // degree
        if better >= guess:
            return guess
        guess = better


def _bounded(value):
    if isinstance(value, Fraction) and max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise CalcError(f"a result has more than {MAX_RESULT_DIGITS} digits")
    return value


def _number(value):
    if isinstance(value, (Fraction, Decimal)):
        return value
    raise CalcError("a number is needed, not a list" if isinstance(value, list)
                    else "a number is needed, not true or false")


def _decimal(value):
    return value if isinstance(value, Decimal) else Decimal(value.numerator) / Decimal(value.denominator)


def _whole(value, user):
    value = _number(value)
    if isinstance(value, Fraction) and value.denominator == 1:
        return value.numerator
    raise CalcError(f"{user} needs whole numbers")


# ---------------------------------------------------------------- functions


def _flat(values):
    for value in values:
        if isinstance(value, list):
            yield from _flat(value)
        else:
            yield _number(value)


def _several(values):
    values = list(_flat(values))
    if not values:
        raise CalcError("at least one number is needed")
    if any(isinstance(value, Decimal) for value in values):
        values = [_decimal(value) for value in values]
    return values


def _sum(*values):
    values = _several(values)
    return sum(values[1:], values[0])


def _mean(*values):
    values = _several(values)
    return sum(values[1:], values[0]) / len(values)


def _median(*values):
    values = sorted(_several(values))
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def round_half_up(value, places=0):
    """Round as spreadsheets do: halves go away from zero."""
    places = _places(places)
    scaled = abs(Fraction(_number(value))) * Fraction(10) ** places + Fraction(1, 2)
    rounded = math.floor(scaled) / Fraction(10) ** places
    return -rounded if value < 0 else rounded


def _round_even(value, places=0):
    return Fraction(round(Fraction(_number(value)) * Fraction(10) ** _places(places))) / Fraction(10) ** _places(places)


def _places(places):
    places = places if isinstance(places, int) else _whole(places, "round")
    if abs(places) > MAX_PRECISION_DIGITS:
        raise CalcError(f"round takes at most {MAX_PRECISION_DIGITS} places")
    return places


def _factorial(value):
    value = _whole(value, "factorial")
    if not 0 <= value <= MAX_FACTORIAL:
        raise CalcError(f"factorial takes whole numbers from 0 to {MAX_FACTORIAL}")
    return Fraction(math.factorial(value))


def _choose(total, chosen, ordered):
    total, chosen = _whole(total, "comb and perm"), _whole(chosen, "comb and perm")
    if not 0 <= chosen <= total:
        return Fraction(0)
    chosen_effective = chosen if ordered else min(chosen, total - chosen)
    if chosen_effective * max(total.bit_length(), 1) > 4 * MAX_BITS:
        raise CalcError(f"a result has more than {MAX_RESULT_DIGITS} digits")
    return Fraction(math.perm(total, chosen) if ordered else math.comb(total, chosen_effective))


def _gcd(*values):
    result = 0
    for value in _several(values):
        result = math.gcd(result, _whole(value, "gcd"))
    return Fraction(result)


def _lcm(*values):
    result = 1
    for value in _several(values):
        value = abs(_whole(value, "lcm"))
        result = result * value // math.gcd(result, value) if value else 0
        if not result:
            break
        _bounded(Fraction(result))
    return Fraction(result)


def _powmod(base, exponent, modulus):
    base, exponent, modulus = (_whole(value, "powmod") for value in (base, exponent, modulus))
    if modulus == 0:
        raise ZeroDivisionError
    if modulus.bit_length() > 8_192 or exponent.bit_length() > 8_192:
        raise CalcError("powmod takes numbers of at most 8192 bits")
    try:
        return Fraction(pow(base, exponent, modulus))
    except ValueError:
        raise CalcError(f"{base} has no inverse modulo {modulus}") from None


def _isprime(value):
    value = _whole(value, "isprime")
    if value >= MAX_PRIME:
        raise CalcError(f"isprime takes numbers below {MAX_PRIME}")
    primes = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)
    if value < 2 or any(value % prime == 0 for prime in primes):
        return value in primes
    odd, twos = value - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(_passes_miller_rabin(prime, odd, twos, value) for prime in primes)


def _passes_miller_rabin(base, odd, twos, value):
    power = pow(base, odd, value)
    if power in (1, value - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % value
        if power == value - 1:
            return True
    return False


def _root(value, degree):
    degree = _whole(degree, "root")
    if not 1 <= degree <= 1_000:
        raise CalcError("root takes degrees from 1 to 1000")
    value = _number(value)
    if value < 0:
        if degree % 2 == 0:
            raise CalcError("a negative number has no even root")
        return -_root(-value, Fraction(degree))
    if isinstance(value, Fraction):
        root = _exact_root(value, degree)
        if root is not None:
            return root
    elif value == 0:
        return value
    return _decimal(value).sqrt() if degree == 2 else _decimal(value) ** (Decimal(1) / degree)


def _logarithm(value, base=None):
    if base is None:
        raise CalcError("log needs a base: log(x, base), ln(x), log10(x) or log2(x)")
    value, base = _number(value), _number(base)
    if value <= 0 or base <= 0 or base == 1:
        raise CalcError("a logarithm needs positive numbers and a base other than 1")
    result = _decimal(value).ln() / _decimal(base).ln()
    whole = result.to_integral_value()
    if isinstance(value, Fraction) and isinstance(base, Fraction) and abs(whole) < MAX_BITS and abs(result - whole) < Decimal("1e-9"):
        with contextlib.suppress(CalcError):
            if _whole_power(base, int(whole)) == value:
                return Fraction(int(whole))
    return result


def _natural_logarithm(value):
    if _number(value) <= 0:
        raise CalcError("a logarithm needs a positive number")
    return Fraction(0) if value == 1 else _decimal(value).ln()


def _exp(value):
    return Fraction(1) if _number(value) == 0 else _decimal(value).exp()


def _euler():
    return Decimal(1).exp()


def _pi():
    """Machin's formula in whole numbers: exact to the working precision."""
    digits = decimal.getcontext().prec + 5
    unit = 10 ** (digits + 5)

    def arctan_of_inverse(inverse):
        term = unit // inverse
        total, divisor, sign = term, 1, 1
        while term:
            term //= inverse * inverse
            divisor, sign = divisor + 2, -sign
            total += sign * (term // divisor)
        return total

    return +Decimal(4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))).scaleb(-(digits + 5))


def _sine_and_cosine(value):
    value = _decimal(_number(value))
    if value.adjusted() > 100:
        raise CalcError("sin, cos and tan take angles up to 1e100")
    with decimal.localcontext() as context:
        context.prec += 10 + max(0, value.adjusted())
        # Below half a turn; then halved ten times for a short series, and doubled back.
        reduced = value.remainder_near(2 * _pi()) if abs(value) > 3 else value
        small = reduced / 1024
        square, sine, term, step = small * small, small, small, 1
        while term and term.adjusted() > small.adjusted() - context.prec:
            step += 2
            term = -term * square / (step * (step - 1))
            sine += term
        cosine = (1 - sine * sine).sqrt()
        for _ in range(10):
            sine, cosine = 2 * sine * cosine, cosine * cosine - sine * sine
    floor = Decimal(10) ** (8 - decimal.getcontext().prec)
    if abs(value) >= 1:  # sin(pi) is 0, not the rounding error of pi
        sine = Decimal(0) if abs(sine) < floor else sine
    return +sine, Decimal(0) if abs(cosine) < floor else +cosine


def _tangent(value):
    sine, cosine = _sine_and_cosine(value)
    if cosine == 0:
        raise CalcError("tan has no value here")
    return sine / cosine


def _arctangent(value):
    value = _decimal(_number(value))
    with decimal.localcontext() as context:
        context.prec += 10
        if abs(value) > 1:
            half = _pi() / 2
            result = (half if value > 0 else -half) - _arctangent(1 / value)
        else:
            halvings = 8
            for _ in range(halvings):
                value = value / (1 + (1 + value * value).sqrt())
            square, result, term, step = value * value, value, value, 1
            while term and term.adjusted() > value.adjusted() - context.prec:
                term, step = -term * square, step + 2
                result += term / step
            result *= 2 ** halvings
    return +result


def _arcsine(value):
    value = _decimal(_number(value))
    if abs(value) > 1:
        raise CalcError("asin and acos take numbers from -1 to 1")
    if abs(value) == 1:
        return _pi() / 2 * value
    return _arctangent(value / ((1 - value) * (1 + value)).sqrt())


CONSTANTS = {"pi": _pi, "e": _euler, "tau": lambda: 2 * _pi()}

FUNCTIONS = {
    "abs": lambda x: abs(_number(x)),
    "sign": lambda x: Fraction((_number(x) > 0) - (x < 0)),
    "floor": lambda x: Fraction(math.floor(_number(x))),
    "ceil": lambda x: Fraction(math.ceil(_number(x))),
    "trunc": lambda x: Fraction(math.trunc(_number(x))),
    "round": round_half_up, "round_even": _round_even,
    "min": lambda *values: min(_several(values)), "max": lambda *values: max(_several(values)),
    "sum": _sum, "mean": _mean, "median": _median,
    "gcd": _gcd, "lcm": _lcm, "factorial": _factorial, "powmod": _powmod, "isprime": _isprime,
    "comb": lambda n, k: _choose(n, k, False), "perm": lambda n, k: _choose(n, k, True),
    "xor": lambda a, b: Fraction(_whole(a, "xor") ^ _whole(b, "xor")),
    "sqrt": lambda x: _root(x, Fraction(2)), "cbrt": lambda x: _root(x, Fraction(3)), "root": _root,
    "exp": _exp, "ln": _natural_logarithm, "log": _logarithm,
    "log10": lambda x: _logarithm(x, Fraction(10)), "log2": lambda x: _logarithm(x, Fraction(2)),
    "sin": lambda x: _sine_and_cosine(x)[0], "cos": lambda x: _sine_and_cosine(x)[1], "tan": _tangent,
    "asin": _arcsine, "acos": lambda x: _pi() / 2 - _arcsine(x), "atan": _arctangent,
    "degrees": lambda x: _decimal(_number(x)) * 180 / _pi(), "radians": lambda x: _decimal(_number(x)) * _pi() / 180,
}


# ---------------------------------------------------------------- showing numbers


def show(value, digits=DEFAULT_DIGITS, places=None):
    """Return `value` as text: exact where `digits` significant digits suffice, else rounded."""
    return _show(value, digits, places)[0]


def _show(value, digits, places):
    """Return the text and whether it is the exact value."""
    _allow_long_integers()
    if isinstance(value, bool):
        return ("true" if value else "false"), True
    if isinstance(value, int):
        value = Fraction(value)
    if places is not None:
        rounded = round_half_up(value, places)
        whole, rest = divmod(abs(rounded.numerator) * 10 ** places // rounded.denominator, 10 ** places)
        text = ("-" if rounded < 0 else "") + str(whole) + (f".{rest:0{places}d}" if places else "")
        return text, isinstance(value, Fraction) and rounded == value
    if isinstance(value, Fraction) and value.denominator == 1:
        return str(value.numerator), True
    exact = isinstance(value, Fraction)
    with decimal.localcontext(decimal.Context(prec=digits, Emax=999_999_999, Emin=-999_999_999)) as context:
        if exact:
            short = Decimal(value.numerator) / Decimal(value.denominator)
            exact = not context.flags[decimal.Inexact]
        else:
            short = +value
    short = short.normalize(decimal.Context(prec=digits + 1, Emax=999_999_999, Emin=-999_999_999))
    if short == 0:
        return "0", exact
    if -7 < short.adjusted() < max(digits, 21):
        return f"{short:f}", exact
    return f"{short:e}".replace("e+", "e"), exact


def _fraction_text(value):
    if isinstance(value, Fraction) and value.denominator != 1:
        return f"{value.numerator}/{value.denominator}"
    return None


def _allow_long_integers():
    # Python 3.11 and later refuse to print whole numbers of over 4300 digits; the bounds above are ours.
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)


def _shorten(text, limit=60):
    return repr(text if len(text) <= limit else text[:limit - 1] + "…")


# ---------------------------------------------------------------- statistics

# Wide enough that sums and sums of squares of all accepted values stay exact.
_EXACT = decimal.Context(prec=5 * MAX_EXPONENT, Emax=999_999, Emin=-999_999,
                         traps=[decimal.Inexact, decimal.InvalidOperation])
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", re.ASCII)


def parse_number(text, decimal_comma=False):
    """Return the Decimal that `text` writes ("1,234.5" included), or None."""
    text = text.strip()
    if decimal_comma:
        text = text.replace(".", "").replace(",", ".")
    elif "," in text and _GROUPED.fullmatch(text):
        text = text.replace(",", "")
    if not _NUMBER.fullmatch(text) or len(text) > MAX_EXPONENT:
        return None
    value = Decimal(text)
    return value if not value or abs(value.adjusted()) <= MAX_EXPONENT else None


class _Sample:
    """Numbers with exact totals; those that a float holds without loss take 8 bytes each."""

    def __init__(self):
        self.values, self.total, self.squares = array("d"), Decimal(0), Decimal(0)

    def extend(self, batch):
        if len(self.values) + len(batch) > MAX_VALUES:
            raise CalcError(f"more than {MAX_VALUES} numbers")
        with decimal.localcontext(_EXACT):
            self.total = sum(batch, self.total)
            self.squares = sum(map(operator.mul, batch, batch), self.squares)
        if isinstance(self.values, array):
            near = list(map(float, batch))
            if list(map(Decimal, map(repr, near))) == batch:
                self.values.extend(near)
                return
            self.values = [Decimal(repr(kept)) for kept in self.values]
        self.values.extend(batch)

    def exact(self, value):
        return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def describe(values, quantiles=(Fraction(1, 4), Fraction(3, 4)), digits=DEFAULT_DIGITS):
    """Return statistics of an iterable of numbers (int, float, Decimal or text) as a dict.

    Quantiles interpolate linearly between neighbours, as spreadsheets and NumPy do.
    """
    sample, values = _Sample(), map(_as_decimal, values)
    for batch in iter(lambda: list(itertools.islice(values, BATCH)), []):
        sample.extend(batch)
    count = len(sample.values)
    if not count:
        raise CalcError("no numbers")
    ordered = sorted(sample.values)
    total, squares = Fraction(sample.total), Fraction(sample.squares)
    spread = squares - total * total / count
    result = {"count": Fraction(count), "sum": total, "mean": total / count,
              "median": _quantile(sample, ordered, Fraction(1, 2)),
              "min": sample.exact(ordered[0]), "max": sample.exact(ordered[-1])}
    with decimal.localcontext(decimal.Context(prec=digits + GUARD_DIGITS)):
        result["stdev"] = _root(spread / (count - 1), Fraction(2)) if count > 1 else None
        result["pstdev"] = _root(spread / count, Fraction(2))
    result["variance"] = spread / (count - 1) if count > 1 else None
    for share in quantiles:
        result[f"q{show(Fraction(share))}"] = _quantile(sample, ordered, Fraction(share))
    modes = _modes(ordered)
    if modes:
        result["mode"] = sample.exact(modes[0])
    return result


def _as_decimal(value):
    if isinstance(value, Decimal):
        return value
    if isinstance(value, Fraction):
        raise CalcError("statistics take int, float, Decimal or text, not Fraction")
    parsed = parse_number(str(value))
    if parsed is None:
        raise CalcError(f"{_shorten(str(value))} is not a number")
    return parsed


def _quantile(sample, ordered, share):
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    low = sample.exact(ordered[below])
    if place == below:
        return low
    return low + (sample.exact(ordered[below + 1]) - low) * (place - below)


def _modes(ordered):
    """Return the most frequent value as a list; an empty one without a single winner."""
    best, best_count, tied, run, previous = None, 1, False, 0, None
    for value in ordered:
        run = run + 1 if value == previous else 1
        previous = value
        if run > best_count:
            best, best_count, tied = value, run, False
        elif run == best_count and value != best:
            tied = True
    return [best] if best is not None and not tied else []


def regress(pairs, digits=DEFAULT_DIGITS):
    """Return the least-squares line through (x, y) pairs as a dict of exact and rounded numbers."""
    count, sums = 0, [Decimal(0)] * 5
    pairs = iter(pairs)
    for batch in iter(lambda: list(itertools.islice(pairs, BATCH)), []):
        xs, ys = (list(map(_as_decimal, side)) for side in zip(*batch))
        count += len(batch)
        terms = (xs, ys, map(operator.mul, xs, xs), map(operator.mul, xs, ys), map(operator.mul, ys, ys))
        with decimal.localcontext(_EXACT):
            sums = [sum(side, before) for side, before in zip(terms, sums)]
    if count < 2:
        raise CalcError("a line needs at least two points")
    x, y, xx, xy, yy = (Fraction(value) for value in sums)
    spread_x, spread_xy, spread_y = xx - x * x / count, xy - x * y / count, yy - y * y / count
    if spread_x == 0:
        raise CalcError("all x are equal: no line fits")
    slope = spread_xy / spread_x
    result = {"count": Fraction(count), "slope": slope, "intercept": (y - slope * x) / count,
              "r": None, "r_squared": None, "residual_stdev": None}
    with decimal.localcontext(decimal.Context(prec=digits + GUARD_DIGITS)):
        if spread_y:
            result["r_squared"] = spread_xy ** 2 / (spread_x * spread_y)
            root = _root(result["r_squared"], Fraction(2))
            result["r"] = -root if spread_xy < 0 else root
        if count > 2:
            result["residual_stdev"] = _root((spread_y - slope * spread_xy) / (count - 2), Fraction(2))
    return result


# ---------------------------------------------------------------- input


def find_input(name):
    """Return the path of a data file: as given from here, else from the user's folder (USER_CWD)."""
    name = os.path.expanduser(name)
    places = [os.path.abspath(name)]
    if os.environ.get("USER_CWD"):
        other = os.path.abspath(os.path.join(os.environ["USER_CWD"], name))
        places += [other] if other != places[0] else []
    files = [place for place in places if os.path.exists(place) and not os.path.isdir(place)]
    if not files:
        folders = [place for place in places if os.path.isdir(place)]
        if folders:
            raise CalcError(f"{folders[0]} is a folder, not a file")
        raise CalcError(f"no file {name!r}: looked for {' and '.join(places)}")
    if len(files) == 2 and not os.path.samefile(*files):
        print(f"calc.py: note: reading {files[0]}, not {files[1]}", file=sys.stderr)
    return files[0]


def read_columns(name, columns, delimiter=None, header=True, decimal_comma=False, tally=None):
    """Yield, for each row of a CSV file ("-": stdin), a list of Decimals from `columns`.

    A column is a name or a number counted from 1. Rows with a cell that is no number are
    left out and counted in `tally`, a dict of "empty" and "skipped".
    """
    tally = {} if tally is None else tally
    tally.update({"empty": 0, "skipped": 0, "example": None})
    with contextlib.ExitStack() as stack:
        if name == "-":
            stream = sys.stdin.buffer
        else:
            stream = stack.enter_context(open(find_input(name), "rb"))
        start = stream.peek(4)[:4]
        encoding = "utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        if encoding != "utf-16" and b"\0" in stream.peek(4096)[:4096]:
            raise CalcError(f"{name} looks like a binary file")
        lines = (line.replace("\0", "") for line in _decoded(stream, encoding))
        yield from _columns(name, lines, columns, delimiter, header, decimal_comma, tally)


def _decoded(stream, encoding):
    if encoding == "utf-16":
        yield from stream.read().decode(encoding, "replace").splitlines(True)
        return
    for number, line in enumerate(stream):
        yield line.decode("utf-8-sig" if number == 0 else "utf-8", "replace")


def _columns(name, lines, columns, delimiter, header, decimal_comma, tally):
    first = next(lines, None)
    if first is None or not first.strip():
        raise CalcError(f"{name} is empty or begins with an empty line")
    if delimiter is None:
        delimiter = max(",;\t|", key=first.count)
    csv.field_size_limit(10_000_000)
    rows = csv.reader(_chain(first, lines), delimiter=delimiter)
    try:
        places = None
        for row in rows:
            if places is None:
                places = _places_of(columns, row, header)
                if header:
                    continue
            cells = [row[place].strip() if place < len(row) else "" for place in places]
            if not all(cells):
                tally["empty"] += 1
                continue
            numbers = [parse_number(cell, decimal_comma) for cell in cells]
            if None in numbers:
                tally["skipped"] += 1
                tally["example"] = tally["example"] or cells[numbers.index(None)]
                continue
            yield numbers
    except csv.Error as error:
        raise CalcError(f"{name}, line {rows.line_num}: {error}") from None


def _chain(first, rest):
    yield first
    yield from rest


def _places_of(columns, row, header):
    names = [cell.strip() for cell in row] if header else []
    lower = [cell.lower() for cell in names]
    places = []
    for column in columns:
        if column in names:
            places.append(names.index(column))
        elif column.lower() in lower:
            places.append(lower.index(column.lower()))
        elif column.isascii() and column.isdigit() and 1 <= int(column) <= len(row):
            places.append(int(column) - 1)
        else:
            shown = ", ".join(names[:40]) if header else f"1 to {len(row)}"
            raise CalcError(f"no column {column!r}; columns: {shown}")
    return places


def _stdin_text():
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    return sys.stdin.buffer.read().decode("utf-8-sig", "replace")


def _split_numbers(texts, decimal_comma=False):
    for text in texts:
        for word in re.split(r"[\s;]+" if decimal_comma else r"[\s;]+|,\s+", text.strip()):
            if not decimal_comma and _GROUPED.fullmatch(word):
                raise CalcError(f"{word!r} may be one number or several: write it without commas, or with spaces")
            for part in [word] if decimal_comma else word.split(","):
                if part:
                    value = parse_number(part, decimal_comma)
                    if value is None:
                        raise CalcError(f"{_shorten(part)} is not a number (or beyond 1e{MAX_EXPONENT})")
                    yield value


# ---------------------------------------------------------------- command line


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"calc.py: error: {message[:300]} (see --help)\n")


def _count(low, high):
    def parse(text):
        if not re.fullmatch(r"\d{1,9}", text.strip()) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"needs a whole number from {low} to {high}, not {text!r}")
        return int(text)
    return parse


def _shares(text):
    shares = []
    for part in filter(None, re.split(r"[,\s]+", text)):
        share = parse_number(part)
        if share is None or not 0 <= share <= 1:
            raise argparse.ArgumentTypeError(f"needs numbers from 0 to 1, not {part!r}")
        shares.append(Fraction(share))
    return shares


def build_parser():
    """Return the command line's parser."""
    parser = _Parser(prog="calc.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    common = _Parser(add_help=False)
    common.add_argument("--digits", type=_count(1, MAX_PRECISION_DIGITS), default=DEFAULT_DIGITS,
                        help="significant digits of rounded results (default %(default)s)")
    common.add_argument("--places", type=_count(0, MAX_PRECISION_DIGITS), help="digits after the point, always that many")
    common.add_argument("--json", action="store_true", help="JSON; numbers as text, so that no digit is lost")
    table = _Parser(add_help=False)
    table.add_argument("--file", metavar="FILE", help="CSV file, - for stdin")
    table.add_argument("--delimiter", help="cell delimiter (default: the likeliest of , ; tab |)")
    table.add_argument("--no-header", action="store_true", help="the first row is data; columns go by number")
    table.add_argument("--decimal-comma", action="store_true", help="1.234,5 means 1234.5")

    command = commands.add_parser("eval", parents=[common], help="evaluate expressions (or the lines of stdin)")
    command.add_argument("expressions", nargs="*", metavar="EXPRESSION")
    command.add_argument("--base", type=int, choices=(2, 8, 16), help="show whole numbers in this base")
    command = commands.add_parser("stats", parents=[common, table], help="mean, median, stdev, quantiles …")
    command.add_argument("numbers", nargs="*", metavar="NUMBER")
    command.add_argument("--column", help="column's name, or its number counted from 1")
    command.add_argument("--quantiles", type=_shares, default=[Fraction(1, 4), Fraction(3, 4)],
                         help="shares such as 0.5,0.9,0.99 (default 0.25,0.75)")
    command = commands.add_parser("regress", parents=[common, table], help="line of least squares")
    command.add_argument("points", nargs="*", metavar="X,Y")
    command.add_argument("--x", metavar="COLUMN")
    command.add_argument("--y", metavar="COLUMN")
    command.add_argument("--at", action="append", default=[], metavar="X", help="predict y here; may be repeated")
    return parser


def _run_eval(options):
    lines = options.expressions
    if not lines:
        lines = [line for line in _stdin_text().splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise CalcError("no expression: give one as an argument or on stdin")
    names, results = {}, []
    for line in lines:
        line = line.strip()
        value = evaluate(line, names, options.digits)
        text, exact = _show(value, options.digits, options.places)
        if options.base:
            if not isinstance(value, Fraction) or value.denominator != 1:
                raise CalcError(f"--base needs a whole number, not {text}")
            number = value.numerator
            text = ("-" if number < 0 else "") + {2: "0b{:b}", 8: "0o{:o}", 16: "0x{:x}"}[options.base].format(abs(number))
        result = {"expression": line, "value": text, "exact": exact}
        if not exact and _fraction_text(value):
            result["fraction"] = _fraction_text(value)
        results.append(result)
    if options.json:
        return json.dumps(results, ensure_ascii=False)
    return "\n".join(_result_line(result, len(results) > 1, options.places) for result in results)


def _result_line(result, several, places):
    text = result["value"]
    if several:
        sign = "->" if re.search(r"[=<>]", result["expression"]) else "="
        text = f"{result['expression']} {sign} {text}"
    if result["exact"] or places is not None:
        return text
    fraction = result.get("fraction", "")
    return text + (f" (rounded; exactly {fraction})" if 0 < len(fraction) <= 40 else " (rounded)")


def _run_stats(options):
    tally = {}
    if options.file:
        if not options.column:
            raise CalcError("--file needs --column (a name, or a number counted from 1)")
        rows = read_columns(options.file, [options.column], options.delimiter, not options.no_header,
                            options.decimal_comma, tally)
        values = (row[0] for row in rows)
    else:
        if options.column:
            raise CalcError("--column needs --file (- for stdin)")
        values = _split_numbers(options.numbers or [_stdin_text()], options.decimal_comma)
    try:
        result = describe(values, options.quantiles, options.digits)
    except CalcError as error:
        raise _with_tally(error, tally) from None
    return _table(result, tally, options)


def _run_regress(options):
    tally = {}
    if options.file:
        if not options.x or not options.y:
            raise CalcError("--file needs --x and --y (column names, or numbers counted from 1)")
        pairs = read_columns(options.file, [options.x, options.y], options.delimiter, not options.no_header,
                             options.decimal_comma, tally)
    else:
        pairs = _pairs(options.points or _stdin_text().splitlines(), options.decimal_comma)
    places = [next(_split_numbers([text], options.decimal_comma), None) for text in options.at]
    try:
        result = regress(pairs, options.digits)
    except CalcError as error:
        raise _with_tally(error, tally) from None
    for place in filter(lambda place: place is not None, places):
        result[f"at {place}"] = result["slope"] * Fraction(place) + result["intercept"]
    return _table(result, tally, options)


def _pairs(texts, decimal_comma):
    for text in texts:
        if text.strip():
            parts = re.split(r"[;\s]+" if decimal_comma else r"[,;\s]+", text.strip())
            numbers = [parse_number(part, decimal_comma) for part in parts]
            if len(numbers) != 2 or None in numbers:
                raise CalcError(f"{_shorten(text)} is no pair X,Y of numbers")
            yield numbers


def _with_tally(error, tally):
    if str(error) == "no numbers" and not tally:
        return CalcError("no numbers: give them as arguments, on stdin, or with --file and --column")
    if str(error) == "no numbers" and tally.get("skipped"):
        return CalcError(f"no numbers: {tally['skipped']} cells such as {_shorten(tally['example'])} are text")
    return error


def _table(result, tally, options):
    shown = {name: None if value is None else _show(value, options.digits, None if name == "count" else options.places)[0]
             for name, value in result.items()}
    for name in ("empty", "skipped"):
        if tally.get(name):
            shown[name] = str(tally[name])
    if options.json:
        return json.dumps(shown, ensure_ascii=False)
    width = max(map(len, shown))
    lines = [f"{name:<{width}}  {'undefined' if text is None else text}" for name, text in shown.items()]
    if tally.get("skipped"):
        lines[-1] += f" (not numbers, such as {_shorten(tally['example'], 30)})"
    return "\n".join(lines)


def _protect_minus(argument):
    """Keep argparse from taking an expression such as -3+4 for an option."""
    return " " + argument if re.match(r"-(?:[-+]*[\d.(]|[A-Za-z_]\w*\(|(?:pi|e|tau)\b)", argument) else argument


def main(arguments=None):
    """Run the command line; return the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments and arguments[0] not in COMMANDS + ("-h", "--help"):
        arguments.insert(0, "eval")
    options = build_parser().parse_args([_protect_minus(argument) for argument in arguments])
    run = {"eval": _run_eval, "stats": _run_stats, "regress": _run_regress}[options.command]
    try:
        print(run(options), flush=True)
        return 0
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader left: nothing more to say
        return 0
    except (CalcError, OSError) as error:
        print(f"calc.py: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
