"""Forty texts that would run a script, fetch something or lie about what is read, if a page took them for markup.

`canary()` is the script that none may run, `evil.example` the host that none may reach.
"""

from __future__ import annotations

HOSTILE = (
    "<script>canary()</script>",
    "<img src=x onerror=canary()>",
    '<img src="http://evil.example/a.png">',
    "![pixel](http://evil.example/b.png)",
    "![pixel](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9InRvcC5jYW5hcnkoKSIvPg==)",
    '[![nested](http://evil.example/c.png)](javascript:canary() "title")',
    "[click](javascript:canary())",
    "[click](JaVaScRiPt:canary())",
    "[click](java\tscript:canary())",
    "[click](&#106;avascript:canary())",
    "[click](data:text/html,<script>canary()</script>)",
    "[click](vbscript:canary())",
    "[click](//evil.example/d)",
    "[click](http://evil.example/e)",
    "<javascript:canary()>",
    "<http://evil.example/f>",
    "[ref]\n\n[ref]: javascript:canary()",
    "<svg onload=canary()>",
    "<svg><script>canary()</script></svg>",
    "<svg><foreignObject><iframe srcdoc='<script>parent.canary()</script>'></iframe></foreignObject></svg>",
    '<iframe src="javascript:parent.canary()"></iframe>',
    '<iframe srcdoc="<script>parent.canary()</script>"></iframe>',
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=canary()&gt;'>",
    "<template><script>canary()</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=canary()>'>",
    "</textarea><script>canary()</script>",
    "</title><script>canary()</script>",
    "</style></script><script>canary()</script>",
    '" onmouseover="canary()" autofocus onfocus="canary()',
    "' onclick='canary()' x='",
    "<a href=javascript:canary()>x</a>",
    "<form action=javascript:canary()><button>go</button></form>",
    "<object data=javascript:canary()></object><embed src=javascript:canary()>",
    '<link rel=stylesheet href="http://evil.example/g.css"><meta http-equiv=refresh content="0;url=http://evil.example/h">',
    '<style>body{background:url("http://evil.example/i")}</style>',
    '<div style="background:url(http://evil.example/j)">x</div>',
    '<base href="http://evil.example/">',
    "<details open ontoggle=canary()><summary>x</summary></details>",
    "&lt;script&gt;canary()&lt;/script&gt; &#60;img src=x onerror=canary()&#62;",
    "safe \u202etxt.exe\u202c ${canary()} {{constructor.constructor('canary()')()}} \u2066hidden\u2069",
)
assert len(HOSTILE) == 40

TITLES = ("</h1><script>canary()</script>", '"><img src=x onerror=canary()>', "[x](javascript:canary())")
"""Of the book, and of lessons; what a file may be called is up to the file system."""
NAMES = ("'onload=canary() x='.md", '"><img src=x onerror=canary()>.md', "javascript:canary().md")
