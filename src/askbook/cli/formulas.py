"""TeX as a terminal can show it: as Unicode signs, or else as words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from askbook.answer.check.marks import CODE
from askbook.formulas import INLINE, find_tex

_CODE = re.compile(CODE, re.DOTALL | re.MULTILINE)
_FENCED = re.compile(r"```\{?math\}?[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_LONGEST = 4000
_DEEPEST = 40
_TOKEN = re.compile(r"\\(?:begin|end)\{[A-Za-z]+\*?\}|\\[A-Za-z]+|\\.|[{}^_&~]|\s+|.", re.DOTALL)
_NAMED = """
alpha α beta β gamma γ delta δ epsilon ε varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι kappa κ lambda λ mu μ
nu ν xi ξ
pi π rho ρ sigma σ tau τ upsilon υ phi φ varphi φ chi χ psi ψ omega ω Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ
Phi Φ Psi Ψ Omega Ω infty ∞ partial ∂ nabla ∇ sum ∑ prod ∏ int ∫ iint ∬ oint ∮ cdot · cdots ⋯ ldots … dots … vdots ⋮
ddots ⋱
times × div ÷ pm ± mp ∓ ast * star ⋆ circ ∘ bullet • le ≤ leq ≤ ge ≥ geq ≥ ll ≪ gg ≫ ne ≠ neq ≠ approx ≈ equiv ≡ sim
∼ simeq ≃
cong ≅ propto ∝ in ∈ notin ∉ ni ∋ subset ⊂ subseteq ⊆ supset ⊃ supseteq ⊇ cup ∪ cap ∩ setminus ∖ emptyset ∅ varnothing ∅
forall ∀ exists ∃ neg ¬ lnot ¬ land ∧ wedge ∧ lor ∨ vee ∨ oplus ⊕ otimes ⊗ to → rightarrow → leftarrow ← gets ← mapsto ↦
Rightarrow ⇒ implies ⇒ Leftarrow ⇐ iff ⇔ Leftrightarrow ⇔ leftrightarrow ↔ uparrow ↑ downarrow ↓ mid | parallel ∥
perp ⊥ angle ∠
langle ⟨ rangle ⟩ lceil ⌈ rceil ⌉ lfloor ⌊ rfloor ⌋ lVert ‖ rVert ‖ Vert ‖ vert | lvert | rvert | ell ℓ hbar ℏ Re ℜ Im ℑ
prime ′ dagger † degree ° top ⊤ bot ⊥ therefore ∴ because ∵ colon : lbrace { rbrace } quad \u2003 qquad \u2003
"""
_SIGNS = dict(zip(*[iter(_NAMED.replace("\u2003", "_").split())] * 2, strict=True)) | {"quad": "  ", "qquad": "  "}
_RAISED = dict(zip("0123456789+-=()nijkmxyabcdeTt′*", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱʲᵏᵐˣʸᵃᵇᶜᵈᵉᵀᵗ′*", strict=True))
_LOWERED = dict(zip("0123456789+-=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", strict=True))
_ACCENTS = {"hat": "\u0302", "bar": "\u0304", "overline": "\u0304", "vec": "\u20d7", "tilde": "\u0303", "dot": "\u0307"}
_SILENCED = """
left right big Big bigg Bigg bigl bigr Bigl Bigr displaystyle textstyle limits nolimits text mathrm mathbf mathit
mathsf mathtt mathcal mathbb mathfrak boldsymbol bm operatorname textbf textit texttt mbox nonumber
"""
_SILENT = frozenset(_SILENCED.split())
_MATRIX = re.compile(r"[pbvBV]?matrix|array|smallmatrix")


def show_formulas(text: str, escaped: bool = False) -> str:
    """The text with every formula readable and code unchanged. `escaped`: the result is rendered as Markdown."""
    pieces: list[str] = []
    at = 0
    for code in _CODE.finditer(text):
        written = _FENCED.fullmatch(code[0])
        pieces += _show(text[at : code.start()], escaped), read_aloud(written[1]) if written else code[0]
        at = code.end()
    return "".join((*pieces, _show(text[at:], escaped)))


def _show(prose: str, escaped: bool) -> str:
    def show(found: re.Match[str]) -> str:
        tex = find_tex(found)
        if tex is None:
            return found[0]
        shown = read_aloud(tex)
        return re.sub(r"([*_\\])", r"\\\1", shown).replace("\n", "  \n") if escaped else shown

    return INLINE.sub(show, prose)


def read_aloud(tex: str) -> str:
    """One line for each row of the formula; what is too long or too deep stays TeX."""
    if len(tex) > _LONGEST or tex.count("{") > _LONGEST // 10:
        return tex.strip()
    shown = _TexReader(_TOKEN.findall(tex)).read()
    return "\n".join(" ".join(line.split()) for line in shown.split("\n")).strip()


class _TexReader:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens: Iterator[str] = iter(tokens)
        self._deep = 0

    def read(self, until: str = "") -> str:
        """Up to the sign that ends this group; a group that does not end is read to the end of the formula."""
        shown = ""
        for sign in self._tokens:
            if sign == until:
                break
            if sign in ("^", "_"):
                shown = shown.rstrip() + _place(self._argument(), sign)
            else:
                shown += self._say(sign)
        return shown

    def _argument(self) -> str:
        """The next group or sign; beyond the depth limit the bare sign."""
        sign = next((token for token in self._tokens if not token.isspace()), "")
        if self._deep >= _DEEPEST:
            return sign
        self._deep += 1
        shown = self._say(sign).strip()
        self._deep -= 1
        return shown

    def _say(self, sign: str) -> str:
        if sign == "{":
            return self._group("}")
        if sign == "\\\\":
            return "\n"
        if sign.startswith("\\begin"):
            return self._environment(sign[7:-1].rstrip("*"), sign.replace("begin", "end"))
        if sign == "&":
            return "\t"
        if sign in ("~", "\\,", "\\;", "\\:", "\\ "):
            return " "
        if len(sign) > 1 and sign[0] == "\\":
            return self._command(sign[1:])
        return "" if sign in ("}", "\\") else sign

    def _group(self, until: str) -> str:
        self._deep += 1
        inner = self.read(until) if self._deep < _DEEPEST else ""
        self._deep -= 1
        return inner

    def _command(self, name: str) -> str:
        if name in ("frac", "dfrac", "tfrac"):
            return f"{_bracket(self._argument())}/{_bracket(self._argument())}"
        if name == "sqrt":
            degree = ""
            argument = self._argument()
            if argument == "[":
                degree, argument = _place(self._group("]"), "^"), self._argument()
            return f"{degree}√{_bracket(argument)}"
        if name == "tag":
            return f"  ({self._argument()})"
        if name in _ACCENTS:
            inner = self._argument()
            return unicodedata.normalize("NFC", inner + _ACCENTS[name]) if len(inner) == 1 else inner
        if name in _SILENT or not name[0].isalpha():
            return "" if name in _SILENT or name == "!" else "‖" if name == "|" else name
        # An unknown name is shown without its backslash.
        return _SIGNS.get(name) or f" {name} "

    def _environment(self, name: str, end: str) -> str:
        if name in ("array", "alignat"):
            self._argument()
        rows = [[cell.strip() for cell in row.split("\t")] for row in self._group(end).split("\n") if row.strip()]
        if _MATRIX.fullmatch(name):
            return f"[{'; '.join(' '.join(row) for row in rows)}]"
        if name == "cases":
            return "{ " + "; ".join(", ".join(row) for row in rows)
        return "\n".join(" ".join(row) for row in rows)


def _place(inner: str, mark: str) -> str:
    signs = _RAISED if mark == "^" else _LOWERED
    inner = inner.strip()
    if inner in ("∘", "°") and mark == "^":
        return "°"
    if inner and all(character in signs for character in inner):
        return "".join(signs[character] for character in inner)
    return f"{mark}{inner if len(inner) == 1 else f'({inner})'}"


def _bracket(inner: str) -> str:
    return inner if re.fullmatch(r"√?[\w.α-ωΑ-Ω]*[⁰-₟²³¹]*", inner) else f"({inner})"
