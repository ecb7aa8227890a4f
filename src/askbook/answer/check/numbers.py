"""Numbers in a sentence: 1,000 is 1000, 2.50 is 2.5, twenty is 20; ten centimetres are not ten metres."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_UNITS = """
ns:nanosecond us:µs,microsecond ms:millisecond s:sec,second min:minute h:hr,hour day week month year:yr
nm:nanometer,nanometre um:µm,micrometer,micrometre mm:millimeter,millimetre cm:centimeter,centimetre m:meter,metre
km:kilometer,kilometre inch:inches ft:foot,feet mile:mi mg:milligram g:gram kg:kilogram,kilo lb:pound ton:tonne
Hz:hertz kHz:kilohertz MHz:megahertz GHz:gigahertz mV:millivolt V:volt mA:milliamp A:amp,ampere mW:milliwatt W:watt
kW:kilowatt J:joule kJ:kilojoule cal:calorie N:newton Nm:N·m Pa:pascal kPa:kilopascal eV:electronvolt Ω:ohm bit byte:B
KB:kilobyte KiB MB:megabyte MiB GB:gigabyte GiB TB:terabyte rad:radian deg:°,degree °C:celsius °F:fahrenheit K:kelvin
%:percent px:pixel fps dB:decibel rpm m/s cm/s km/s m/s²:m/s^2 km/h mph rad/s ml:milliliter,millilitre l:liter,litre
mol:mole
"""
UNIT_OF: dict[str, str] = {}
"""Spelling → name."""
for _entry in _UNITS.split():
    _name, _, _others = _entry.partition(":")
    _names = (_name, *filter(None, _others.split(",")))
    UNIT_OF |= dict.fromkeys((*_names, *(f"{name}s" for name in _names if len(name) > 2)), _name)
UNIT = "|".join(map(re.escape, sorted(UNIT_OF, key=len, reverse=True)))

_SMALL = """
two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_SPELLED = {word: value for value, word in enumerate(_SMALL.split(), start=2)}
_SPELLED |= {word: 10 * value for value, word in enumerate(_TENS.split(), start=2)}
_MULTIPLES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "k": 1e3}

_NUMBER = re.compile(
    r"(?<![\w.])(?P<sign>(?<![\w)\]])-)?(?P<currency>[$€£])?"
    r"(?:(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?![\d.]*\.\d)"
    rf"|(?P<word>\b(?:{'|'.join(sorted(_SPELLED, key=len, reverse=True))})\b)"
    r"|(?P<article>\b(?:an?|one) (?=hundred|thousand|million)))"
    r"(?P<multiple>[\s-]?(?:hundred|thousand|million|billion|trillion)\b|k\b)?"
    rf"(?:[\s-]?(?P<unit>per cent\b|(?:{UNIT})(?![\w/])))?(?P<tail>\w*)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Number:
    value: float
    unit: str
    written: str
    is_spelled: bool


def read_numbers(plain: str) -> Iterator[Number]:
    for found in _NUMBER.finditer(plain):
        # "3D" and "2nd" are words.
        if found["tail"]:
            continue
        word = (found["word"] or "").lower()
        value = _SPELLED[word] if word else float((found["digits"] or "1").replace(",", ""))
        value *= _MULTIPLES.get((found["multiple"] or "").strip(" -").lower(), 1)
        unit = found["currency"] or _name_unit(found["unit"])
        yield Number(-value if found["sign"] else value, unit, found[0].strip(), bool(word))


def read_units(plain: str) -> set[str]:
    """Units that are named anywhere, as in a table's head."""
    return {UNIT_OF[word] for word in re.findall(r"[^\W\d_]{2,}|%", plain) if word in UNIT_OF}


def _name_unit(written: str | None) -> str:
    """Case matters only where two units differ by it ("mW", "MW")."""
    if not written:
        return ""
    return "%" if written.lower() == "per cent" else UNIT_OF.get(written) or UNIT_OF.get(written.lower()) or written
