"""Documentation sites are understood from their generators' own files, and nothing of them runs."""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import unquote

import pytest
from shelf import read_all, split, write_book

from askbook.book.chunker import split_lesson
from askbook.book.reader import explain_layout, read_book, read_lessons
from askbook.book.sections import Anchors
from askbook.book.sites.javascript import Call, read_javascript

PAGE = "# Page\n\ntext"
REPOSITORY = {"README.md": "# The repository", "CONTRIBUTING.md": PAGE, "CHANGELOG.md": PAGE, "tests/notes.md": PAGE}


def lines(folder: Path) -> list[str]:
    """File, place and address of each lesson, in reading order."""
    return [
        f"{file} {lesson.module} {lesson.chapter} {lesson.lesson} {lesson.url}"
        for file, lesson in read_all(folder)[0].items()
    ]


def pages(*paths: str) -> dict[str, str]:
    return {path: f"# {path}\n\ntext" for path in paths}


# --- the generators -------------------------------------------------------------------------------


def test_mkdocs(tmp_path: Path) -> None:
    config = """site_name: Robots
site_url: https://robots.example.org/docs/
theme: {name: material}
markdown_extensions:
  - pymdownx.superfences:
      format: !!python/name:os.system
extra: {key: !ENV [KEY, "none"]}
exclude_docs: |
  drafts/
  *.tmp.md
nav:
  - Welcome: index.md
  - install.md
  - Guide:
      - guide/index.md
      - Arms: guide/arms.md
      - Legs:
          - Walking: guide/walking.md
  - Elsewhere: https://example.org
"""
    files = pages("index.md", "install.md", "guide/index.md", "guide/arms.md", "guide/walking.md", "stray.md")
    folder = write_book(
        tmp_path / "r",
        {
            "mkdocs.yml": config,
            **REPOSITORY,
            **{f"docs/{name}": text for name, text in files.items()},
            "docs/drafts/new.md": PAGE,
            "docs/guide/a.tmp.md": PAGE,
            "docs/fr/install.md": PAGE,
            "docs/install.de.md": PAGE,
        },
    )
    book = read_book(folder)
    assert (book.title, book.base_url) == ("Robots", "https://robots.example.org/docs")
    assert lines(folder) == [
        "docs/index.md main 0 0 https://robots.example.org/docs/",
        "docs/install.md main 0 1 https://robots.example.org/docs/install/",
        "docs/guide/index.md guide 0 0 https://robots.example.org/docs/guide/",
        "docs/guide/arms.md guide 0 1 https://robots.example.org/docs/guide/arms/",
        "docs/guide/walking.md guide 1 1 https://robots.example.org/docs/guide/walking/",
        "docs/stray.md main 0 2 https://robots.example.org/docs/stray/",
    ]
    assert read_all(folder)[0]["docs/guide/walking.md"].chapter_title == "Legs"
    assert read_all(folder)[1] == []
    assert explain_layout(folder, book).why == (
        "Material for MkDocs: found by mkdocs.yml; its navigation has 5 pages, in docs/, which has 1 more. "
        "Published at https://robots.example.org/docs."
    )


def test_titles_of_a_navigation_are_without_tags(tmp_path: Path) -> None:
    config = "site_name: X\nnav:\n- 'The &nbsp<samp>run</samp>&nbsp; Command': a.md\n- '<b>In</b> & out': [b.md]\n"
    lessons = read_all(write_book(tmp_path, {"mkdocs.yml": config, "docs/a.md": "text", "docs/b.md": "text"}))[0]
    assert lessons["docs/a.md"].title == "The run Command"
    assert lessons["docs/b.md"].module_title == "In & out"


def test_mdbook_publishes_what_its_summary_names(tmp_path: Path) -> None:
    folder = write_book(
        tmp_path,
        {
            "guide/book.toml": '[book]\ntitle = "Arms"\nsrc = "text"\n[output.html]\nsite-url = "https://arms.example.org/b/"\n',
            "guide/text/SUMMARY.md": (
                "# Summary\n\n[Hello](README.md)\n\n- [One [of] it](one.md) (still short)\n  - [Two](a/two.md)\n"
            ),
            "guide/text/README.md": "text",
            "guide/text/one.md": "text",
            "guide/text/a/two.md": "text",
            "guide/text/not-yet.md": "text",
            **REPOSITORY,
        },
    )
    assert read_book(folder).title == "Arms"
    assert lines(folder) == [
        "guide/text/README.md main 0 0 https://arms.example.org/b/index.html",
        "guide/text/one.md main 1 0 https://arms.example.org/b/one.html",
        "guide/text/a/two.md main 1 1 https://arms.example.org/b/a/two.html",
    ]
    assert [lesson.title for lesson in read_all(folder)[0].values()] == ["Hello", "One [of] it", "Two"]


DOCUSAURUS = """import {themes} from 'prism-react-renderer';
const config: Config = {
  title: 'Legs',
  url: process.env.URL || 'https://legs.example.org',
  baseUrl: '/x/',
  presets: [['classic', {docs: {path: '../docs', sidebarPath: require.resolve('./sidebars.js')}} satisfies Options]],
};
export default config;
"""
SIDEBARS = """module.exports = {
  docs: [
    'intro', // the first
    {type: 'category', label: 'Walking', link: {type: 'doc', id: 'walk/index'}, items: [
      {type: 'doc', id: 'walk/the-gait', label: 'Gaits'},
      {type: 'category', label: 'Deep', items: [{type: 'autogenerated', dirName: 'deep'}]},
    ]},
    {Short: ['running']},
    {type: 'link', label: 'out', href: 'https://example.org'},
  ],
};
"""


def test_docusaurus(tmp_path: Path) -> None:
    files = {
        "docs/intro.md": "---\nslug: /\n---\n# Hello",
        "docs/walk/index.md": "---\nid: index\n---\n# Walking",
        "docs/walk/03-gait.md": "---\nid: the-gait\n---\n# The gait",
        "docs/deep/02-second.mdx": "# Second",
        "docs/deep/late.mdx": "---\nsidebar_position: 1\n---\n# Late",
        "docs/deep/_part.mdx": PAGE,
        "docs/running.md": "# Running",
        "docs/beside.md": "# Beside",
        "docs/soon.md": "---\ndraft: true\n---\n# Soon",
        "website/versioned_docs/version-1/intro.md": PAGE,
        "website/i18n/fr/intro.md": PAGE,
        "website/blog/2024-01-01-news.md": PAGE,
    }
    config = {"website/docusaurus.config.ts": DOCUSAURUS, "website/sidebars.js": SIDEBARS}
    folder = write_book(tmp_path / "d", {**config, **files, **REPOSITORY})
    assert read_book(folder).title == "Legs"
    assert lines(folder) == [
        "docs/intro.md main 0 1 https://legs.example.org/x/docs/",
        "docs/walk/index.md walking 0 0 https://legs.example.org/x/docs/walk/",
        "docs/walk/03-gait.md walking 0 1 https://legs.example.org/x/docs/walk/the-gait",
        "docs/deep/late.mdx walking 1 1 https://legs.example.org/x/docs/deep/late",
        "docs/deep/02-second.mdx walking 1 2 https://legs.example.org/x/docs/deep/second",
        "docs/running.md short 0 1 https://legs.example.org/x/docs/running",
        "docs/beside.md main 0 2 https://legs.example.org/x/docs/beside",
    ]
    (folder / "website" / "versions.json").write_text('["2.0", "1.0"]')
    assert read_book(folder).base_url == "https://legs.example.org/x/docs/next"


def test_docusaurus_without_sidebars_keeps_the_places_of_its_folders(tmp_path: Path) -> None:
    files = {
        "docs/01-start.md": PAGE,
        "docs/02-more/_category_.json": '{"label": "More", "position": 2}',
        "docs/02-more/01-a.md": PAGE,
        "docs/02-more/deep/b.md": PAGE,
    }
    bare = write_book(tmp_path / "bare", files)
    sited = write_book(tmp_path / "sited", {**files, "docusaurus.config.js": "module.exports = {title: 'T'}"})
    assert [line.split(" /")[0] for line in lines(sited)] == [line.split(" /")[0] for line in lines(bare)]
    assert read_book(sited).title == "T"


def test_vitepress_spread_over_files(tmp_path: Path) -> None:
    folder = write_book(
        tmp_path / "v",
        {
            "docs/.vitepress/config/index.mts": "import { defineConfig } from 'vitepress'\n"
            "import { en } from './en.js'\n"
            "export default defineConfig({ title: `Hands`, base: '/h/', cleanUrls: true,\n"
            "  sitemap: { hostname: 'https://hands.example.org' },\n"
            "  srcExclude: ['**/notes.md'],\n"
            "  locales: { root: { lang: 'en-US', ...en }, zh: { link: '/zh/' } } })\n",
            "docs/.vitepress/config/en.ts": "export const en = { themeConfig: { sidebar: {\n"
            "  '/guide/': { base: '/guide/', items: guide() },\n"
            "  '/api/': [{ text: 'API', link: '/api/', items: [{ text: 'Grip', link: '/api/grip.html' }] }] } } }\n"
            "function guide(): Item[] {\n  return [{ text: 'Guide', items: [{ text: 'Start', link: 'start' }] }]\n}\n",
            **{
                f"docs/{name}": text
                for name, text in pages("index.md", "guide/start.md", "api/index.md", "api/grip.md").items()
            },
            "docs/zh/only-here.md": PAGE,
            "docs/guide/notes.md": PAGE,
            "docs/blog/one.md": PAGE,
        },
    )
    assert read_book(folder).title == "Hands"
    assert lines(folder) == [
        "docs/guide/start.md guide 0 1 https://hands.example.org/h/guide/start",
        "docs/api/index.md api 0 0 https://hands.example.org/h/api/",
        "docs/api/grip.md api 0 1 https://hands.example.org/h/api/grip",
        "docs/index.md main 0 0 https://hands.example.org/h/",
    ]


def test_vuepress(tmp_path: Path) -> None:
    config = """import { defaultTheme } from '@vuepress/theme-default'
export default defineUserConfig({ locales: { '/': { title: 'Eyes' }, '/de/': {} },
  theme: defaultTheme({ hostname: 'https://eyes.example.org', locales: { '/': { sidebar: { '/guide/': [
    { text: 'Seeing', children: ['/guide/README.md', '/guide/light.md', ['far', 'Far away']] } ] } } } }) })
"""
    folder = write_book(
        tmp_path,
        {
            ".vuepress/config.ts": config,
            **pages(
                "README.md", "guide/README.md", "guide/light.md", "guide/far.md", "de/guide/light.md", "CONTRIBUTING.md"
            ),
        },
    )
    assert read_book(folder).title == "Eyes"
    assert lines(folder) == [
        "guide/README.md seeing 0 0 https://eyes.example.org/guide/",
        "guide/light.md seeing 0 1 https://eyes.example.org/guide/light.html",
        "guide/far.md seeing 0 2 https://eyes.example.org/guide/far.html",
        "README.md main 0 0 https://eyes.example.org/",
    ]


def test_hugo(tmp_path: Path) -> None:
    folder = write_book(
        tmp_path,
        {
            "hugo.yaml": "baseURL: &u https://ears.example.org/\ntitle: Ears\ntheme: [docsy]\nother: *u\n",
            "content/en/_index.md": "---\ntitle: Home\n---\ntext",
            "content/en/docs/_index.md": "+++\ntitle = 'Documentation'\nweight = 20\n+++\ntext",
            "content/en/docs/Sound/_index.md": "---\ntitle: All about sound\nlinkTitle: Sound\nweight: 2\n---\n",
            "content/en/docs/Sound/waves.md": "---\ntitle: Waves\nweight: 9\n---\ntext",
            "content/en/docs/Sound/air.md": "---\ntitle: Air\nweight: 1\nslug: the-air\n---\ntext",
            "content/en/docs/first/index.md": "---\ntitle: First\nweight: 1\n---\ntext",
            "content/en/docs/soon.md": "---\ntitle: Soon\ndraft: true\n---\ntext",
            "content/en/blog/news.md": PAGE,
            "content/fr/_index.md": PAGE,
            **REPOSITORY,
        },
    )
    assert read_book(folder).title == "Ears"
    assert lines(folder) == [
        "content/en/_index.md main 0 0 https://ears.example.org/",
        "content/en/docs/_index.md main 0 1 https://ears.example.org/docs/",
        "content/en/docs/first/index.md main 0 2 https://ears.example.org/docs/first/",
        "content/en/docs/Sound/_index.md sound 0 0 https://ears.example.org/docs/sound/",
        "content/en/docs/Sound/air.md sound 0 1 https://ears.example.org/docs/sound/the-air/",
        "content/en/docs/Sound/waves.md sound 0 2 https://ears.example.org/docs/sound/waves/",
    ]
    assert read_all(folder)[0]["content/en/docs/_index.md"].title == "Documentation"
    assert read_all(folder)[1] == []


def test_sphinx_with_myst(tmp_path: Path) -> None:
    index = """# Feet

```{note}
Mind your step.
```

````{card}
```{toctree}
:caption: Learn
:maxdepth: 2

start
Toes <anatomy/toes>
```
````

````
```{toctree}
example-only
```
````

```{toctree}
anatomy/index
https://example.org
```
"""
    folder = write_book(
        tmp_path,
        {
            "docs/conf.py": "import os\nproject = 'Feet'\nhtml_baseurl = \"https://feet.example.org/en/latest/\"\n"
            "extensions = ['myst_parser']\nexclude_patterns = ['_build', 'old']\nopen('/tmp/should-not-be', 'w')\n",
            "docs/index.md": index,
            "docs/anatomy/index.md": "# Anatomy\n\n```{toctree}\n:glob:\n\n*\n```\n",
            **{f"docs/{name}": text for name, text in pages("start.md", "anatomy/toes.md", "anatomy/heel.md").items()},
            "docs/_changes.md": "# Changes",
            "docs/old/x.md": PAGE,
            "docs/example-only.md": PAGE,
            **REPOSITORY,
        },
    )
    assert read_book(folder).title == "Feet"
    assert lines(folder) == [
        "docs/index.md main 0 0 https://feet.example.org/en/latest/index.html",
        "docs/start.md learn 0 1 https://feet.example.org/en/latest/start.html",
        "docs/anatomy/toes.md learn 0 2 https://feet.example.org/en/latest/anatomy/toes.html",
        "docs/anatomy/index.md anatomy 0 0 https://feet.example.org/en/latest/anatomy/index.html",
        "docs/anatomy/heel.md anatomy 0 1 https://feet.example.org/en/latest/anatomy/heel.html",
        "docs/_changes.md main 0 1 https://feet.example.org/en/latest/_changes.html",
        "docs/example-only.md main 0 2 https://feet.example.org/en/latest/example-only.html",
    ]


def test_jupyter_book(tmp_path: Path) -> None:
    toc = """format: jb-book
root: intro
parts:
- caption: Basics
  chapters:
  - file: bones
    sections:
    - file: deep/marrow
  - url: https://example.org
- caption: More
  chapters:
  - file: _log
    title: Log
"""
    folder = write_book(
        tmp_path,
        {
            "_toc.yml": toc,
            "_config.yml": "title: Bones\nhtml: {baseurl: 'https://bones.example.org/'}\n",
            **pages("intro.md", "bones.md", "deep/marrow.md", "_log.md", "README.md"),
        },
    )
    assert read_book(folder).title == "Bones"
    assert lines(folder) == [
        "intro.md main 0 1 https://bones.example.org/intro.html",
        "bones.md basics 1 0 https://bones.example.org/bones.html",
        "deep/marrow.md basics 1 1 https://bones.example.org/deep/marrow.html",
        "_log.md more 0 1 https://bones.example.org/_log.html",
    ]


def test_nextra(tmp_path: Path) -> None:
    folder = write_book(
        tmp_path / "n",
        {
            "askbook.toml": 'title = "Necks"\nbase_url = "https://necks.example.org"\n',
            "next.config.mjs": "import nextra from 'nextra'\nexport default nextra({})({})\n",
            "content/_meta.js": (
                "export default { index: { display: 'hidden' }, zoo: 'The zoo', deep: { title: 'Deep down' } }\n"
            ),
            "content/deep/_meta.json": '{"second": "", "first": "The first"}',
            **{
                f"content/{name}": text
                for name, text in pages("index.mdx", "about.mdx", "zoo.mdx", "deep/first.mdx", "deep/second.md").items()
            },
            **REPOSITORY,
        },
    )
    assert lines(folder) == [
        "content/index.mdx main 0 0 https://necks.example.org/",
        "content/zoo.mdx main 0 1 https://necks.example.org/zoo",
        "content/deep/second.md deep-down 0 1 https://necks.example.org/deep/second",
        "content/deep/first.mdx deep-down 0 2 https://necks.example.org/deep/first",
        "content/about.mdx main 0 2 https://necks.example.org/about",
    ]


def test_starlight(tmp_path: Path) -> None:
    config = """import starlight from '@astrojs/starlight';
const site = process.env.SITE ?? 'https://stars.example.org';
export default defineConfig({ site, base: '/b', integrations: [react(), starlight({
  title: 'Stars',
  locales: { root: { label: 'English', lang: 'en' }, fr: { label: 'Français' } },
  sidebar: [{ label: 'Start', items: ['start', { label: 'More', slug: 'more' }] },
    { label: 'All', items: [{ autogenerate: { directory: 'all' } }] }],
})] });
"""
    docs = "docs/src/content/docs"
    folder = write_book(
        tmp_path,
        {
            "docs/astro.config.mjs": config,
            f"{docs}/index.mdx": "---\ntitle: Welcome\n---\ntext",
            f"{docs}/start.md": "---\ntitle: Start here\n---\ntext",
            f"{docs}/more.md": "---\ntitle: More\n---\ntext",
            f"{docs}/all/b.md": "---\ntitle: B\nsidebar:\n  order: 1\n---\ntext",
            f"{docs}/all/Big A.md": "---\ntitle: A\n---\ntext",
            f"{docs}/fr/etoile.md": "---\ntitle: Étoile\n---\ntext",
            f"{docs}/404.md": PAGE,
            **REPOSITORY,
        },
    )
    assert read_book(folder).title == "Stars"
    assert lines(folder) == [
        f"{docs}/index.mdx main 0 0 https://stars.example.org/b/",
        f"{docs}/start.md start 0 1 https://stars.example.org/b/start/",
        f"{docs}/more.md start 0 2 https://stars.example.org/b/more/",
        f"{docs}/all/b.md all 0 1 https://stars.example.org/b/all/b/",
        f"{docs}/all/Big A.md all 0 2 https://stars.example.org/b/all/big-a/",
    ]


# --- what holds for all ---------------------------------------------------------------------------


def test_the_books_own_file_wins(tmp_path: Path) -> None:
    files = {
        "mkdocs.yml": "site_name: Theirs\nsite_url: https://theirs.example.org\n",
        "docs/a/b.md": PAGE,
        "docs/x/c.md": PAGE,
    }
    toml = (
        'title = "Ours"\nbase_url = "https://ours.example.org"\nignore = ["docs/x/"]\n[modules]\n"docs/a" = "alpha"\n'
    )
    folder = write_book(tmp_path, {**files, "askbook.toml": toml})
    assert read_book(folder).title == "Ours"
    assert lines(folder) == ["docs/a/b.md alpha 0 1 https://ours.example.org/a/b/"]


def test_modules_outside_the_site_make_the_folders_the_book(tmp_path: Path) -> None:
    files = {"mkdocs.yml": "site_name: Theirs\n", "docs/a.md": PAGE, "lessons/b.md": PAGE}
    folder = write_book(tmp_path, {**files, "askbook.toml": '[modules]\n"lessons" = "ours"\n'})
    assert set(read_all(folder)[0]) == {"docs/a.md", "lessons/b.md"}


def test_a_site_beside_numbered_modules_is_not_the_book(tmp_path: Path) -> None:
    files = {
        "docs/conf.py": "project = 'X'\n",
        "docs/build.md": PAGE,
        "module-1-a/01-x.md": PAGE,
        "module-2-b/01-y.md": PAGE,
    }
    assert set(read_all(write_book(tmp_path, files))[0]) == {
        "docs/build.md",
        "module-1-a/01-x.md",
        "module-2-b/01-y.md",
    }


def test_a_section_on_themes_is_a_lesson(tmp_path: Path) -> None:
    files = {
        "docs/.vuepress/config.js": "module.exports = {title: 'T'}",
        "docs/a.md": PAGE,
        "docs/theme/README.md": PAGE,
    }
    assert set(read_all(write_book(tmp_path, files))[0]) == {"docs/a.md", "docs/theme/README.md"}


def test_two_letters_are_not_always_a_language(tmp_path: Path) -> None:
    files = (
        "index.md",
        "install.md",
        "go/install.md",
        "it/index.md",
        "de/install.md",
        "de/only-here.md",
        "install.js.md",
    )
    folder = write_book(tmp_path, {"mkdocs.yml": "site_name: X\n", **{f"docs/{name}": PAGE for name in files}})
    left_out = {"docs/de/install.md", "docs/de/only-here.md"}
    assert set(read_all(folder)[0]) == {f"docs/{name}" for name in files} - left_out


def test_the_docs_folder_alone_is_read_by_its_folders(tmp_path: Path) -> None:
    """Nothing outside the given folder is read, so the config above it is not known."""
    write_book(tmp_path, {"mkdocs.yml": "site_name: Robots\n", "docs/index.md": "# Robots and we", "docs/a/b.md": PAGE})
    assert read_book(tmp_path / "docs").title == "Robots and we"
    assert lines(tmp_path / "docs") == ["index.md main 0 0 /read/docs/", "a/b.md a 0 1 /read/docs/a/b"]


def test_a_config_in_a_lesson_s_listing_is_no_site(tmp_path: Path) -> None:
    files = {
        "module-1-a/01-x.md": PAGE,
        "module-1-a/code/mkdocs.yml": "site_name: X\n",
        "module-1-a/code/docs/y.md": PAGE,
    }
    assert (
        len(
            lines(
                write_book(tmp_path, {**files, "examples/docs/conf.py": "project = 'x'\n", "examples/docs/z.md": PAGE})
            )
        )
        == 3
    )


def test_a_site_without_pages_gives_way_to_the_folders(tmp_path: Path) -> None:
    folder = write_book(tmp_path, {"mkdocs.yml": "site_name: X\n", "docs/picture.svg": "", "chapter-1/01-a.md": PAGE})
    lessons, problems = read_all(folder)
    assert list(lessons) == ["chapter-1/01-a.md"]
    assert [(problem.source_file, problem.message) for problem in problems] == [
        ("mkdocs.yml", "there is no Markdown in docs; the folders give the order instead")
    ]


def test_two_sites_in_one_repository_are_told(tmp_path: Path) -> None:
    config = "module.exports = {title: 'T'}"
    files = {f"{place}/docusaurus.config.js": config for place in ("website", "other-website")}
    folder = write_book(tmp_path, {**files, "website/docs/a.md": PAGE, "other-website/docs/b.md": PAGE})
    lessons, problems = read_all(folder)
    assert list(lessons) == ["website/docs/a.md"]
    assert "other-website/docusaurus.config.js" in problems[0].message


def test_without_an_address_pages_are_read_here_with_our_own_anchors(tmp_path: Path) -> None:
    folder = write_book(
        tmp_path / "b", {"mkdocs.yml": "site_name: X\n", "docs/a.md": "# A\n\n## Ä b\n\ntext\n\n## Ä b\n\ntext"}
    )
    [lesson] = read_all(folder)[0].values()
    assert (lesson.url, lesson.anchors) == ("/read/b/a", "github")


@pytest.mark.parametrize(
    ("files", "claimed", "others"),
    [
        ({"docusaurus.config.js": "module.exports = {url: 'https://d.example.org', baseUrl: '/'}",
          "docs/a.md": "---\nslug: /same\n---\n# A", "docs/b.md": "---\nslug: /same\n---\n# B\n\n## Über b"},
         "https://d.example.org/docs/same", ["docs/b.md"]),
        ({"mkdocs.yml": "site_url: https://d.example.org", "docs/same.md": PAGE, "docs/same/index.md": PAGE,
          "docs/same/README.md": PAGE}, "https://d.example.org/same/", ["docs/same/README.md", "docs/same/index.md"]),
    ],
)  # fmt: skip
def test_of_files_that_claim_one_address_the_others_are_read_here(
    tmp_path: Path, files: dict[str, str], claimed: str, others: list[str]
) -> None:
    lessons, problems = read_all(write_book(tmp_path / "b", files))
    [first] = [file for file, lesson in lessons.items() if lesson.url == claimed]
    assert {file: (lessons[file].url, lessons[file].anchors) for file in others} == {
        file: (f"/read/b/{file}", "github") for file in others
    }
    assert sorted((one.source_file, one.message) for one in problems) == [
        (file, f"its address {claimed} is also that of {first}; askbook shows this file under an address of its own")
        for file in sorted(others)
    ]


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("github", ["über-c-100", "über-c-100-1", "-", "a_b", "my-id", "a_b-1", "badge-props"]),
        ("python", ["uber-c-100", "uber-c-100_1", "-", "a_b", "my-id", "a_b_1", "badge-props"]),
        ("pymdownx", ["über-c-100", "über-c-100_1", "-", "a_b", "my-id", "a_b_1", "badge-props"]),
        ("vue", ["uber-c-100", "uber-c-100-1", "–", "a-b", "my-id", "a-b-1", "badge-props"]),
        ("docutils", ["uber-c-100", "id1", "id2", "a-b", "my-id", "id3", "badge-props"]),
    ],
)
def test_anchors_are_the_generators(style: str, expected: list[str]) -> None:
    headings = ["Über *C* 100", "Über C 100", "–-", "a_b", "Other {#my-id}", "`a_b`", "`<Badge>` props"]
    anchors = Anchors(style)
    assert [unquote(anchors.take(heading)) for heading in headings] == expected


def test_the_name_of_an_emoji_is_no_part_of_a_vue_anchor() -> None:
    assert Anchors("vue").take("Emoji :tada:") == "emoji"


def test_chunks_have_the_sites_anchors(tmp_path: Path) -> None:
    text = "# T\n\n" + "## Été\n\n" + "Words of the first part. " * 80 + "\n\n## Été\n\n" + "Words of the second. " * 80
    folder = write_book(tmp_path, {"mkdocs.yml": "site_name: X\nsite_url: https://x.example.org\n", "docs/a.md": text})
    [lesson] = read_all(folder)[0].values()
    assert {chunk.url for chunk in split_lesson(lesson)} == {
        "https://x.example.org/a/#ete",
        "https://x.example.org/a/#ete_1",
    }


SIDEBAR = "module.exports = {docs: ['a', 'gone', {type: 'doc', id: 'gone/too'}, {type: 'link', href: 'https://x.org'}]}"


@pytest.mark.parametrize(
    ("files", "file", "named"),
    [
        ({"mkdocs.yml": "nav: [a.md, gone.md, {X: [gone/too.md]}, api.html, 'https://x.org']"}, "mkdocs.yml",
         "2 pages that this book does not have: gone.md, gone/too.md"),
        ({"docusaurus.config.js": "module.exports = {title: 'T'}", "sidebars.js": SIDEBAR}, "docusaurus.config.js",
         "2 pages that this book does not have: gone, gone/too"),
        ({"docs/.vitepress/config.js":
         "export default {themeConfig: {sidebar: [{text: 'A', items: [{link: '/gone'}, '/a']}]}}"},
         "docs/.vitepress/config.js", "1 page that this book does not have: gone"),
        ({"book.toml": "[book]\nsrc = 'docs'", "docs/SUMMARY.md": "- [A](a.md)\n- [B](gone.md)\n- [Draft]()"},
         "book.toml", "1 page that this book does not have: gone.md"),
        ({"docs/_toc.yml": "root: a\nchapters: [{file: gone}, {glob: 'x/*'}]"}, "docs/_toc.yml",
         "1 page that this book does not have: gone"),
        ({"docs/conf.py": "project = 'x'\n", "docs/index.md": "```{toctree}\na\ngone\nold\nself\n```\n",
         "docs/old.rst": "Old"}, "docs/conf.py", "2 pages that this book does not have: gone, old.rst"),
        ({"mkdocs.yml": "nav: [" + "".join(f"{n}.md, " for n in range(500)) + "a.md]"}, "mkdocs.yml",
         "500 pages that this book does not have: 0.md, 1.md, 2.md, 3.md, 4.md …"),
    ],
)  # fmt: skip
def test_a_navigation_that_names_what_is_not_there_is_told(
    tmp_path: Path, files: dict[str, str], file: str, named: str
) -> None:
    lessons, problems = read_all(write_book(tmp_path, {"docs/a.md": PAGE, **files}))
    assert "docs/a.md" in lessons
    assert [(one.source_file, one.message) for one in problems] == [(file, f"its navigation names {named}")]


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("docusaurus.config.js", "module.exports = makeConfig(process.env)", "made by a program, which is not run"),
        ("docs/.vitepress/config.ts", "export default load('./x.yml')", "made by a program, which is not run"),
        ("mkdocs.yml", "- a\n- b\n", "is no list of `key: value` lines"),
        ("mkdocs.yml", "site_name: caf\xe9\n".encode("latin-1"), "is not UTF-8"),
        ("docusaurus.config.js", b"\xff\xfemodule.exports = {}", "is not UTF-8"),
    ],
)  # fmt: skip
def test_a_config_that_says_nothing_is_told(tmp_path: Path, file: str, text: str | bytes, said: str) -> None:
    lessons, problems = read_all(write_book(tmp_path, {"docs/a.md": PAGE, file: text}))
    assert list(lessons) == ["docs/a.md"]
    [problem] = problems
    assert problem.source_file == file and said in problem.message


@pytest.mark.parametrize(
    ("file", "text", "named"),
    [
        ("docusaurus.config.js", "module.exports = {title: 'T', url: makeUrl(), baseUrl: process.env.BASE}",
         "`url`, `baseUrl`"),
        ("docusaurus.config.js", "module.exports = {title: 'T', presets: [['x', {docs: {sidebarPath: find()}}]]}",
         "`sidebarPath`"),
        ("docs/.vitepress/config.ts", "export default {title: load(), base: '/x/'}", "`title`"),
    ],
)  # fmt: skip
def test_what_a_program_would_make_of_a_config_is_told_where_the_rest_is_read(
    tmp_path: Path, file: str, text: str, named: str
) -> None:
    lessons, problems = read_all(write_book(tmp_path, {"docs/a.md": PAGE, file: text}))
    assert list(lessons) == ["docs/a.md"]
    [problem] = problems
    assert problem.source_file == file
    assert problem.message == f"{named}: made by a program, which is not run; the book is read without it"


RUN = 'require("child_process").execSync("touch ran")'


@pytest.mark.parametrize(
    ("files", "file", "said"),
    [
        ({"docusaurus.config.js": "module.exports = {title: 'T'}",
         "sidebars.js": f'module.exports = {{docs: ["b", ...{RUN}, "a"]}}'}, "sidebars.js",
         "`docs`: in part made by a program"),
        ({"docusaurus.config.js": "module.exports = {title: 'T'}",
          "sidebars.js": "module.exports = {docs: ['b', {type: 'category', label: 'C', items: make()}, 'a']}"},
         "sidebars.js", "`docs`: in part made by a program"),
        ({"docusaurus.config.js": "module.exports = {title: 'T'}",
         "sidebars.js": "module.exports = {docs: ['b', 'a'], ...more()}"}, "sidebars.js",
         "the whole: in part made by a program"),
        ({"docusaurus.config.js": "module.exports = {title: 'T'}",
         "sidebars.js": "module.exports = {docs: ['b', 'a'], api: make()}"}, "sidebars.js",
         "`api`: in part made by a program"),
        ({"next.config.mjs": "export default {}", "docs/_meta.js": "export default { b: 'B', a: () => 'A' }"},
         "docs/_meta.js", "`a`: in part made by a program"),
        ({"next.config.mjs": "export default {}", "docs/_meta.js": "export default { b: 'B', a: { title: name() } }"},
         "docs/_meta.js", "`a`: in part made by a program"),
    ],
)  # fmt: skip
def test_what_a_program_would_make_of_a_navigation_is_told(
    tmp_path: Path, files: dict[str, str], file: str, said: str
) -> None:
    if "next.config.mjs" in files:
        files = {name.replace("docs/", "content/"): text for name, text in files.items()}
        file = file.replace("docs/", "content/")
    docs = "content" if "next.config.mjs" in files else "docs"
    lessons, problems = read_all(write_book(tmp_path, {f"{docs}/a.md": PAGE, f"{docs}/b.md": PAGE, **files}))
    assert list(lessons) == [f"{docs}/b.md", f"{docs}/a.md"]
    assert [(one.source_file, one.message) for one in problems] == [
        (file, f"{said}, which is not run; the book is read without that part")
    ]
    assert not (tmp_path / "ran").exists()


def test_a_nextra_navigation_that_names_what_is_not_there_is_told(tmp_path: Path) -> None:
    meta = (
        "export default { '../../x': 'X', gone: 'Gone', b: 'B', '---': {type: 'separator'}, '*': {theme: {}}, "
        "site: {title: 'S', href: 'https://x.org'}, menu: {type: 'menu', items: {}}, hid: {display: "
        "'hidden'}, deep: 'Deep' }"
    )
    pages = {"content/a.md": PAGE, "content/b.md": PAGE, "content/deep/c.md": PAGE}
    lessons, problems = read_all(write_book(tmp_path, {"next.config.mjs": "", "content/_meta.js": meta, **pages}))
    assert list(lessons) == ["content/b.md", "content/deep/c.md", "content/a.md"]
    assert [(one.source_file, one.message) for one in problems] == [
        ("content/_meta.js", "it names 2 pages that this book does not have: '../../x', 'gone'")
    ]


@pytest.mark.parametrize(
    ("file", "text", "page", "shown"),
    [
        ("mkdocs.yml", "plugins: [macros]\nextra: {version: 1.2.0, of: {robot: R2}}",
         "It is {{ version }} of {{of.robot}}.", "It is 1.2.0 of R2."),
        ("mkdocs.yml", "extra: {version: 1.2.0}", "It is {{ version }}.", "It is {{ version }}."),
        ("docs/conf.py",
         "project = 'x'\nmyst_substitutions = {\n  'a': 'one **A**',\n  # no\n  \"b\": f(),\n  'c': \"two\",\n}\n",
         "{{ a }}, {{ b }}, {{c}}.", "one **A**, {{ b }}, two."),
        ("docs/conf.py", "project = 'x'\n", "---\nmyst:\n  substitutions:\n    a: one\n---\n{{ a }} `{{ a }}`.",
         "one `{{ a }}`."),
        ("docs/_config.yml", "parse: {myst_substitutions: {a: one}}", "{{ a }} and {{ z }}.", "one and {{ z }}."),
        ("docs/.vitepress/config.js", "export default {}",
         "---\nfor: robots\n---\n## Of {{ $frontmatter.for }}\n\nAll {{ $frontmatter.for }}, {{ $frontmatter.no }}.",
         "## Of robots\n\nAll robots, {{ $frontmatter.no }}."),
    ],
)  # fmt: skip
def test_variables_read_as_their_values(tmp_path: Path, file: str, text: str, page: str, shown: str) -> None:
    toc = {"docs/_toc.yml": "root: a\n"} if file.endswith("_config.yml") else {}
    lessons, _ = read_all(write_book(tmp_path, {"docs/a.md": page, file: text, **toc}))
    assert [chunk.text for chunk in split_lesson(lessons["docs/a.md"])] == [shown]


def test_parameters_of_hugo_read_as_their_values(tmp_path: Path) -> None:
    """A page's own before the site's; one that only a program knows is told."""
    files = {
        "hugo.toml": "baseURL = 'https://x.example'\n[params]\nversion = '1.2'\n[params.links]\nHome = 'h'",
        "content/a.md": (
            '---\nname: R2\n---\n{{< param version >}} of {{< param "name" >}}, {{% param links.home %}}, '
            "{{< param no >}}."
        ),
    }
    lessons, problems = read_all(write_book(tmp_path, files))
    assert [chunk.text for chunk in split_lesson(lessons["content/a.md"])] == ["1.2 of R2, h, ."]
    said = "`{{< param no >}}` has no value in the files of the site; nothing is shown in its place"
    assert said in [one.message for one in problems]


# --- JavaScript -----------------------------------------------------------------------------------


def javascript(text: str, **others: str) -> object:
    return read_javascript(
        "c.js", text, lambda _, source: (source, others[source[2:]]) if source[2:] in others else None
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("export default {a: 'x', 'b-c': \"y\\n\\u00e9\", d: [1, -2.5, true, null,], e: `t`}",
         {"a": "x", "b-c": "y\né", "d": [1.0, -2.5, True, None], "e": "t"}),
        ("module.exports = { /* c */ a: 1, // d\n b }", {"a": 1.0, "b": None}),
        ("const b = ['x']; export default {a: [...b, 'y'], ...{c: 1}}", {"a": ["x", "y"], "c": 1.0}),
        ("const r = /['\"`{]/g\nexport default {a: r, b: 'x'}", {"a": None, "b": "x"}),
        ("export default {a: f('x'), m() { return {b: 1} }, get n() { return 2 }, o: x => ({y: 1}), p: 'q'}",
         {"a": Call("f", ["x"]), "o": None, "p": "q"}),
        ("export default {a: `x${y + `{${z}}`}`, b: 'c' + d, e: process.env.X ? 'f' : 'g', h: i && 'j'}",
         {"a": None, "b": None, "e": "g", "h": None}),
        ("import {x as y} from './o'\nimport z from './o'\nexport default {a: y, b: z.k, c: require('./o')}",
         {"a": "exported", "b": "v", "c": {"k": "v"}}),
        ("const a = [b], b = [a]\nexport default {a, c: 'd'} as const", {"a": [None], "c": "d"}),
        ("export const a = (): X.Y[] => [{k: 'x'}]\nconst b = () => ({c: 1})\nexport default {a: a(), b: {'/': b()}}",
         {"a": [{"k": "x"}], "b": {"/": {"c": 1.0}}}),
        ("export default async function () {\n const t = 'x'\n return {title: t}\n}", {"title": "x"}),
    ],
)  # fmt: skip
def test_literals_of_javascript(text: str, expected: object) -> None:
    others = {"o": "export const x = 'exported'\nexport default {k: 'v'}"}
    load = lambda _, source: (source, others[source[2:]]) if source[2:] in others else None  # noqa: E731
    assert read_javascript("c.js", text, load, ("title",)) == expected


# --- hostile --------------------------------------------------------------------------------------

BOMB = "a: &a [x, x]\n" + "".join(f"b{n}: &b{n} [*{'a' if not n else f'b{n - 1}'}, *a]\n" for n in range(40))
NO_CODE = "docusaurus.config.js", "docs/.vitepress/config.ts", "astro.config.mjs", "docs/conf.py"


@pytest.mark.parametrize(
    ("files", "file", "said"),
    [
        ({"mkdocs.yml": f"site_name: X\n{BOMB}nav: [*b39, a.md]\n"}, "mkdocs.yml", "aliases of aliases"),
        ({"mkdocs.yml": "nav: " + "[" * 5_000}, "mkdocs.yml", "nested deeper"),
        ({"mkdocs.yml": "nav:\n" + "- a.md\n" * 60_000}, "mkdocs.yml", "more than 50000 parts"),
        ({"mkdocs.yml": "#" * 10_000_000}, "mkdocs.yml", "larger than 1 MB"),
        ({"docusaurus.config.js": "/" * 10_000_000}, "docusaurus.config.js", "larger than 1 MB"),
        ({"mkdocs.yml": "nav: [../../secret.md, ../outside.md, /etc/passwd]"}, "mkdocs.yml", "leads out of the book"),
        ({"mkdocs.yml": "docs_dir: ../.."}, "mkdocs.yml", "leads out of the book"),
        ({"docusaurus.config.js": "module.exports = {presets: [['c', {docs: {path: '../../..'}}]]}"},
         "docusaurus.config.js", "leads out of the book"),
        ({"book.toml": "[book]\nsrc = '/../..'"}, "book.toml", "leads out of the book"),
        ({"book.toml": "[" * 100_000, "src/SUMMARY.md": "- [x](y.md)"}, "book.toml", "not read as TOML"),
        ({"book.toml": "", "src/SUMMARY.md": "- [x](../../../secret.md)"}, "src/SUMMARY.md", "leads out of the book"),
        ({"docs/conf.py": "project = 'x'", "docs/index.md": "```{toctree}\n../../../secret\n```\n"},
         "docs/index.md", "leads out of the book"),
        ({".vitepress/config.js": "export default {themeConfig: {sidebar: ['/../../secret']}}"},
         ".vitepress/config.js", "leads out of the book"),
        ({"docs/_toc.yml": f"root: a\n{BOMB}chapters: [*b39]\n"}, "docs/_toc.yml", "aliases of aliases"),
        ({"docs/_toc.yml": "root: a\n", "docs/_config.yml": f"title: X\n{BOMB}"}, "docs/_config.yml",
         "aliases of aliases"),
        ({"hugo.yaml": f"baseURL: https://x.example.org\n{BOMB}", "content/y.md": PAGE}, "hugo.yaml",
         "aliases of aliases"),
        ({"docs/a.md": f"---\ntitle: X\n{BOMB}---\n{PAGE}"}, "docs/a.md", "anchors or aliases"),
        ({"docs/_category_.json": '{"a":' * 10_000}, "docs/_category_.json", "nested deeper"),
        ({"hugo.json": '{"a":' * 100_000, "content/y.md": PAGE}, "hugo.json", "not read"),
        ({"docusaurus.config.js": "module.exports = {title: 'T'}", "sidebars.js": "/" * 10_000_000}, "sidebars.js",
         "larger than 1 MB"),
    ],
)  # fmt: skip
def test_hostile_configs_are_refused_with_a_warning(
    tmp_path: Path, files: dict[str, str], file: str, said: str
) -> None:
    write_book(tmp_path, {"secret.md": "# Secret", "outside.md": "# Outside"})
    folder = write_book(tmp_path / "deep" / "book", {"docs/a.md": PAGE, "src/y.md": PAGE, **files})
    started = time.monotonic()
    lessons, problems = read_all(folder)
    assert time.monotonic() - started < 5
    assert any(problem.source_file == file and said in problem.message for problem in problems), problems
    assert lessons
    assert not any(
        "ecret" in lesson.text or "Outside" in lesson.text
        for lesson in lessons.values()
        if "toctree" not in lesson.text
    )


def numbered(pattern: str, count: int) -> str:
    return "".join(pattern.format(n) for n in range(count))


MANY = {f"docs/p{n}.md": PAGE for n in range(500)}
DOCUSAURUS_OF = {"docusaurus.config.js": "module.exports = {title: 'T'}"}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"mkdocs.yml": "nav:\n" + numbered("- ../../x{}.md\n", 45_000)}, "leads out of the book"),
        ({"mkdocs.yml": "nav:\n" + numbered("- x{}.md\n", 45_000)}, "45000 pages"),
        ({"mkdocs.yml": "nav:\n" + numbered("- ./\n", 20_000)}, ""),
        ({**DOCUSAURUS_OF, "sidebars.js": "module.exports = {d: [" + numbered("'x{}',", 100_000) + "]}"},
         "pages that this book does not have"),
        ({**DOCUSAURUS_OF,
         "sidebars.js": "module.exports = {d: ['p1', " + "{type: 'autogenerated', dirName: '.'}, " * 10_000 + "]}"},
         ""),
        ({"docs/.vitepress/config.js":
         "export default {themeConfig: {sidebar: [" + numbered("'/../../{}',", 45_000) + "]}}"},
         "leads out of the book"),
        ({"docs/.vitepress/config.js": "export default {rewrites: {" + numbered("'k{}':'z',", 30_000) + "}}"}, ""),
        ({"book.toml": "[book]\nsrc = 'docs'", "docs/SUMMARY.md": numbered("- [x](../../a{}.md)\n", 40_000)},
         "leads out of the book"),
        ({"docs/conf.py": "project = 'x'", "docs/index.md": "```{toctree}\n" + numbered("{}\n", 100_000) + "```\n"},
         "100000 pages"),
        ({"docs/conf.py": "project = 'x'",
         "docs/index.md": "```{toctree}\n:glob:\n" + numbered("*{}\n", 100_000) + "```\n"}, "more than 200 patterns"),
        ({"docs/_toc.yml": "root: p1\nchapters:\n" + numbered("- glob: '*{}'\n", 10_000)}, "more than 200 patterns"),
    ],
    ids=range(11),
)  # fmt: skip
def test_a_huge_navigation_takes_seconds_and_one_warning(tmp_path: Path, files: dict[str, str], said: str) -> None:
    folder = write_book(tmp_path / "deep" / "book", {**MANY, **files})
    started = time.process_time()
    lessons, problems = read_all(folder)
    assert time.process_time() - started < 5
    assert len(lessons) >= 1
    assert [said in one.message for one in problems] == ([True] if said else [])


def test_no_code_of_a_config_runs(tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    script = (
        f"require('fs').writeFileSync('{proof}', 'x'); export default "
        f"{{title: (() => fs.writeFileSync('{proof}'))(), url: eval('1')}}"
    )
    python = f"open({str(proof)!r}, 'w')\nproject = open({str(proof)!r}, 'w').name\nextensions = []\n"
    for number, file in enumerate(NO_CODE):
        code = python if file.endswith(".py") else f"// starlight\n{script}"
        docs = {"docs/a.md": PAGE, "src/content/docs/a.md": PAGE}
        assert read_all(write_book(tmp_path / str(number) / "book", {file: code, **docs}))[0]
    yaml = (
        f"site_name: !!python/object/apply:os.system ['touch {proof}']\n"
        f"nav: !!python/object/apply:os.system ['touch {proof}']\n"
    )
    assert read_all(write_book(tmp_path / "yaml", {"mkdocs.yml": yaml, "docs/a.md": PAGE}))[0]
    assert not proof.exists()


def test_circles_end(tmp_path: Path) -> None:
    tree = "```{{toctree}}\n{}\n```\n"
    sphinx = {
        "conf.py": "project = 'x'",
        "index.md": tree.format("a"),
        "a.md": tree.format("index\na\nb"),
        "b.md": tree.format("a"),
    }
    assert set(read_all(write_book(tmp_path / "s", sphinx))[0]) == {"index.md", "a.md", "b.md"}
    scripts = {
        "docs/.vitepress/config.ts": (
            "import a from './a'\nconst t = t\nexport default {title: t, themeConfig: {sidebar: a}}"
        ),
        "docs/.vitepress/a.ts": (
            "import c from './config'\nimport b from './a'\nexport default [...c, ...b, '/x', f()]\n"
            "function f() { return f() }"
        ),
        "docs/x.md": PAGE,
    }
    assert list(read_all(write_book(tmp_path / "v", scripts))[0]) == ["docs/x.md"]
    inherit = {"mkdocs.yml": "INHERIT: mkdocs.yml\nsite_name: X", "docs/x.md": PAGE}
    assert read_book(write_book(tmp_path / "m", inherit)).title == "X"


@pytest.mark.parametrize(
    "text",
    ["/*" * 200_000, "`${" * 150_000, "=/[" * 150_000, "export default " + "[" * 400_000, "import " * 60_000,
     "function a() " * 40_000, "export default " + "a ? b : " * 50_000, "const a = () => { " * 30_000,
     ";".join(f"const a{n} = [...a{n + 1}, ...a{n + 1}]" for n in range(60)) + ";const a60 = [1];export default a0"],
)  # fmt: skip
def test_reading_javascript_takes_linear_time(text: str) -> None:
    started = time.process_time()
    read_javascript("c.js", text, lambda *_: None, ("title",))
    assert time.process_time() - started < 10


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = write_book(
        tmp_path / "outside", {"mkdocs.yml": "site_name: Secret", "docs/a.md": "# Secret", "_category_.json": "{}"}
    )
    folder = write_book(tmp_path / "book", {"a.md": PAGE})
    (folder / "docs").symlink_to(outside / "docs")
    (folder / "mkdocs.yml").symlink_to(outside / "mkdocs.yml")
    (folder / "website").symlink_to(outside)
    (folder / "book").symlink_to(folder)
    (folder / "guide").symlink_to("guide")
    assert read_book(folder).title == "Book"
    assert list(read_all(folder)[0]) == ["a.md"]


def test_patterns_of_a_site_take_no_time(tmp_path: Path) -> None:
    pattern = "*a" * 60 + "b"
    folder = write_book(tmp_path, {"mkdocs.yml": f"exclude_docs: '{pattern}'\n", f"docs/{'a' * 200}.md": PAGE})
    started = time.monotonic()
    assert len(read_all(folder)[0]) == 1
    assert time.monotonic() - started < 5


def test_a_book_without_a_site_pays_nothing(tmp_path: Path) -> None:
    """Looking for a site opens no file, and only folders that a site may be in."""
    folder = write_book(
        tmp_path, {f"module-{n}/chapter-{m}/0{k}.md": PAGE for n in range(9) for m in range(9) for k in range(5)}
    )
    book = read_book(folder)
    whole, looked = [], []
    for _ in range(5):
        started = time.process_time()
        read_lessons(folder, book)
        whole.append(time.process_time() - started)
        started = time.process_time()
        read_book(folder)
        looked.append(time.process_time() - started)
    assert min(looked) < min(whole) / 20


def test_toml_front_matter(tmp_path: Path) -> None:
    lesson, [chunk] = split(tmp_path, "+++\ntitle = 'From TOML'\nlesson = 7\n+++\n\nThe text.\n")
    assert (lesson.title, lesson.lesson, chunk.text) == ("From TOML", 7, "The text.")
    lessons, problems = read_all(write_book(tmp_path / "b", {"a.md": "+++\ntitle = \n+++\n\nThe text.\n"}))
    assert "not valid TOML" in problems[0].message
    assert lessons["a.md"].body_start > 0
