"""Numbers in a sentence: 1,000 is 1000, 2.50 is 2.5, twenty is 20; ten centimetres are not ten metres."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

_UNITS = """
ns:nanosecond,nanoseconds us:µs,μs,microsecond,microseconds ms:msec,millisecond,milliseconds
s:sec,secs,second,seconds min:mins,minute,minutes h:hr,hrs,hour,hours day:days week:weeks month:months year:years,yr,yrs
nm:nanometer,nanometers,nanometre,nanometres um:µm,μm,micrometer,micrometers,micrometre,micrometres,micron,microns
mm:millimeter,millimeters,millimetre,millimetres cm:centimeter,centimeters,centimetre,centimetres
m:meter,meters,metre,metres km:kilometer,kilometers,kilometre,kilometres inch:inches ft:foot,feet mile:miles,mi
mg:milligram,milligrams g:gram,grams kg:kilogram,kilograms,kilo,kilos lb:lbs,pound,pounds ton:tons,tonne,tonnes
Hz:hertz,hz kHz:kilohertz,khz MHz:megahertz GHz:gigahertz
mV:millivolt,millivolts V:volt,volts mA:milliamp,milliamps A:amp,amps,ampere,amperes
mW:milliwatt,milliwatts W:watt,watts kW:kilowatt,kilowatts J:joule,joules kJ:kilojoule,kilojoules cal:calorie,calories
N:newton,newtons Nm:N·m kN: Pa:pascal,pascals kPa:kilopascal,kilopascals eV:electronvolt,electronvolts Ω:ohm,ohms
bit:bits byte:bytes,B KB:kB,kilobyte,kilobytes KiB:kibibyte,kibibytes MB:megabyte,megabytes MiB:mebibyte,mebibytes
GB:gigabyte,gigabytes GiB:gibibyte,gibibytes TB:terabyte,terabytes PB:petabyte,petabytes
rad:radian,radians deg:°,degree,degrees °C:celsius °F:fahrenheit K:kelvin %:percent,pct px:pixel,pixels fps:
dB:decibel,decibels rpm: m/s: mm/s: cm/s: km/s: m/s²:m/s^2,m/s2 km/h:kph mph: rad/s: ml:mL,milliliter,milliliters,millilitre,millilitres
l:L,liter,liters,litre,litres mol:mole,moles
"""
UNIT_OF: dict[str, str] = {}
"""As it is written → its one name."""
for _entry in _UNITS.split():
    _name, _, _others = _entry.partition(":")
    UNIT_OF |= dict.fromkeys((_name, *filter(None, _others.split(","))), _name)
UNIT_NAMES = frozenset(name for name in UNIT_OF if len(name) > 2 and name.isalpha())
"""Those that can be told from other words."""
UNIT = "|".join(map(re.escape, sorted(UNIT_OF, key=len, reverse=True)))

_UNTIL_TWENTY = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen twenty
"""
_SMALL = _UNTIL_TWENTY.split()
_BY_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
SPELLED = {word: value for value, word in enumerate(_SMALL)}
for _tens, _ten in enumerate(_BY_TENS.split(), start=2):
    SPELLED |= {_ten: 10 * _tens} | {
        f"{_ten}-{one}": 10 * _tens + value for value, one in enumerate(_SMALL[:10]) if value
    }
_LOOSE = {"one": 1.0, "single": 1.0, "several": math.inf, "many": math.inf, "multiple": math.inf, "numerous": math.inf}
_MULTIPLES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "k": 1e3}

_NUMBER = re.compile(
    r"(?<![\w.])(?P<sign>(?<![\w)\]])-)?(?P<currency>[$€£])?"
    r"(?:(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?![\d.]*\.\d)"
    rf"|(?P<word>\b(?:{'|'.join(sorted({*SPELLED, *_LOOSE}, key=len, reverse=True))})\b)|(?P<article>\b(?:a|some|several) (?=hundred|thousand|million)))"
    r"(?P<multiple>[\s-]?(?:hundred|thousand|million|billion|trillion)\b|k\b)?"
    rf"(?:[\s-]?(?P<unit>per cent\b|(?:{UNIT})(?![\w/])))?(?P<tail>\w*)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Number:
    value: float
    unit: str
    """Empty where none follows."""
    written: str
    loose: bool
    """ "One" and "many": rarely a count, but never the same."""
    start: int
    end: int


def read_numbers(plain: str) -> Iterator[Number]:
    for found in _NUMBER.finditer(plain):
        # "3D" and "2nd" are words.
        if found["tail"]:
            continue
        word = (found["word"] or "").lower()
        value = _LOOSE.get(word) or (SPELLED[word] if word else float((found["digits"] or "1").replace(",", "")))
        value *= _MULTIPLES.get((found["multiple"] or "").strip(" -").lower(), 1)
        unit = found["currency"] or _name_unit(found["unit"])
        loose = word in _LOOSE and not found["multiple"]
        yield Number(-value if found["sign"] else value, unit, found[0].strip(), loose, *found.span())


def _name_unit(written: str | None) -> str:
    """Case tells "mW" from "MW"; where it tells nothing, it does not matter."""
    if not written:
        return ""
    return "%" if written.lower() == "per cent" else UNIT_OF.get(written) or UNIT_OF.get(written.lower()) or written
