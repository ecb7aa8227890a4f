"""The words that tell which way a sentence points: opposites, denials, quantities. English alone."""

from __future__ import annotations

# One line is one scale: the words before the bar against those behind it.
_OPPOSITES = """
enable enables enabled enabling | disable disables disabled disabling
allow allows allowed permit permits permitted let lets | prevent prevents prevented forbid forbids forbidden prohibit prohibits block blocks blocked deny denies denied disallow disallows
possible | impossible
include includes included including | exclude excludes excluded excluding
accept accepts accepted | reject rejects rejected refuse refuses refused
succeed succeeds succeeded success successful successfully | fail fails failed failure aborted abort aborts
start starts started begin begins | stop stops stopped
attach attaches attached | detach detaches detached
connect connects connected | disconnect disconnects disconnected
true | false
present | absent missing
same identical equal | different unequal
add adds added adding | remove removes removed removing removal delete deletes deleted
required mandatory compulsory | optional
static | dynamic
public | private
local | global
mutable | immutable
synchronous | asynchronous
positive | negative
internal inner inside | external outer outside
more greater larger bigger | less fewer smaller
high higher highest | low lower lowest
fast faster fastest quick quicker quickly | slow slower slowest slowly slows
long longer longest | short shorter shortest
before earlier prior precede precedes | after later afterwards
early | late
increase increases increased increasing grow grows raise raises rise rises widen | decrease decreases decreased decreasing reduce reduces reduced shrink shrinks fall falls drop drops
first | last
minimum min | maximum max
above over exceed exceeds exceeding | below under underneath beneath
better best | worse worst
good | bad
strong stronger strongest | weak weaker weakest
old older oldest | new newer newest
most | least
near nearer closer | far farther further
top upper | bottom
forward forwards | backward backwards
expensive costly | cheap cheaper
easy easier simple simpler | hard harder difficult complex
atleast | atmost
big large | small little tiny
wide wider | narrow narrower
left | right
hot hotter warm warmer | cold colder cool cooler
heavy heavier | light lighter
"""
SCALES: dict[str, tuple[str, int]] = {}
"""Word → its scale and which end of it."""
for _line in _OPPOSITES.strip().splitlines():
    _ups, _downs = (_side.split() for _side in _line.split("|"))
    SCALES |= dict.fromkeys(_ups, (f"~{_ups[0]}", 1)) | dict.fromkeys(_downs, (f"~{_ups[0]}", -1))

_DENYING = """
not never no cannot without neither nor hardly barely seldom rarely lack lacks lacking none nothing nobody insteadof
"""
NEGATORS = frozenset(_DENYING.split())
LOOSE_NEGATORS = frozenset(("none", "nothing", "nobody", "insteadof"))
"""What they deny may stand before or behind them."""

_BETWEEN = """
need needs have make get yet even always necessarily longer any ever really actually fully simply just exactly itself
themselves want wish try able way reason use used
"""
PASSED_OVER = frozenset(_BETWEEN.split())
"""They stand between a negator and what it denies."""

_LIGHT = """
also thus therefore hence moreover furthermore additionally however otherwise instead example instance namely well etc
via per within upon among about around both either whether though although since because unless until through during
between against every each any all some other another own very quite rather really simply just much many several
various certain one ones something anything everything thing things way ways here now again still yet even ever often
usually typically typical generally sometimes only always need needs must us them get gets got make makes made making take
takes taken give gives giving given come comes put say says said called call calls named note means mean meaning use
uses used using i.e e.g consist consists consisting contain contains intend intended offer offers lead leads cause
causes correspond corresponds approximately roughly about immediately currently refer refers describe describes
provide provides happen happens occur occurs whereas along together itself themselves yourself able together single
possibility rather than yes
"""
LIGHT = frozenset(_LIGHT.split())
"""They may come and go when a sentence is put in other words."""

QUANTIFIERS = {
    "all": "all every always everything everyone entirely any",
    "each": "each whole entire both",
    "only": "only solely exclusively",
    "alone": "alone just nothing except unless",
    "some": "some often usually sometimes may might most many several typically generally partly mostly few",
}
QUANTIFIER_OF = {word: name for name, words in QUANTIFIERS.items() for word in words.split()}

_TIMES = "half halve halves halved halving double doubles doubled doubling twice triple triples tripled thrice quarter"
MULTIPLES = frozenset(_TIMES.split())
"""As good as numbers: what doubles does not halve."""

_POINTING = "it its they them their theirs this these those such he she his her one ones both latter former"
POINTING = frozenset(_POINTING.split())
"""They take the place of something named before."""
