"""Everything that can be set, as values: from the environment, `.env`, then `[settings]` in `askbook.toml`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from dotenv import dotenv_values
from platformdirs import user_data_path
from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from askbook.docstrings import read_field_docs
from askbook.domain import CheckChoice, UnsupportedChoice
from askbook.errors import InputError

EmbedderChoice = Literal["local", "openai", "cohere", "none"]
QuantizationChoice = Literal["none", "scalar"]
RerankerChoice = Literal["none", "cohere", "local"]
ReaderChoice = Literal["bundled", "none"]
ConfidenceChoice = Literal["calibrated", "raw"]
AnswererChoice = Literal["auto", "extractive", "model"]
ModelApi = Literal["chat", "responses"]
LogFormat = Literal["console", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
Names = Annotated[tuple[str, ...], NoDecode]
"""Written with commas, not as JSON."""
PLACE = ("askbook_home", "database_url", "qdrant_url", "qdrant_api_key")
"""Where the data lies."""


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_file=".env", extra="ignore", frozen=True)

    askbook_home: Path = user_data_path("askbook", appauthor=False)
    """Folder that holds askbook's data."""
    database_url: SecretStr | None = None
    """PostgreSQL (postgresql://…) or SQLite (sqlite:///…). Default: a SQLite file in ASKBOOK_HOME."""
    qdrant_url: str | None = None
    """Qdrant server. Default: Qdrant Edge inside the process, on disk in ASKBOOK_HOME."""
    qdrant_api_key: SecretStr | None = None
    """Key of the Qdrant server."""
    qdrant_collection_name: str = Field(default="askbook", pattern=r"^[A-Za-z0-9_-]{1,64}$")
    """Collection that holds the chunks."""
    qdrant_shards: int = Field(default=1, ge=1, le=1024)
    """Into how many shards a new collection is cut; one for each node at least."""
    qdrant_replicas: int = Field(default=1, ge=1, le=64)
    """On how many nodes each shard of a new collection lies."""
    qdrant_on_disk: bool = False
    """Whether the vectors of a new collection are read from disk, not kept in memory."""
    qdrant_quantization: QuantizationChoice = "none"
    """Whether a new collection is searched by smaller vectors first: none, or scalar (a quarter of the memory)."""
    askbook_embedder: EmbedderChoice = "local"
    """Who embeds: local (MiniLM on this machine), openai, cohere, or none (keywords only)."""
    askbook_embedder_folder: Path | None = None
    """Folder with model.onnx and tokenizer.json to use in place of the local MiniLM."""
    askbook_embedder_threads: int = Field(default=0, ge=0, le=256)
    """Threads of a local embedder, reranker or reader; 0 means one for each core."""
    askbook_reranker: RerankerChoice = "none"
    """Who puts the best passages of a hybrid search in order: none, cohere, or local (a cross-encoder on this
    machine)."""
    askbook_reranker_folder: Path | None = None
    """Folder with model.onnx and tokenizer.json of the local reranker."""
    askbook_reranker_seconds: float = Field(default=2.0, gt=0, le=600)
    """How long reranking may take, as a part of the search; after that the passages stay as they were found."""
    askbook_reader: ReaderChoice | Path = "bundled"
    """Who reads what was found: bundled (the model that comes with askbook), a folder with reader.onnx, or none."""
    askbook_confidence: ConfidenceChoice = "calibrated"
    """What scores and confidence mean: calibrated (a measured chance), or raw (the embedder's cosine, which then
    also decides the order)."""
    openai_api_key: SecretStr | None = None
    """Key of OpenAI or a compatible service."""
    openai_base_url: str = "https://api.openai.com/v1"
    """Address of OpenAI or a compatible service."""
    openai_model: str = Field(default="gpt-4o-mini", min_length=1)
    """Model that writes answers."""
    openai_api: ModelApi = "chat"
    """How the model is called: chat (chat.completions, every service has it) or responses."""
    openai_embedding_model: str = "text-embedding-3-small"
    """Embedding model at OPENAI_BASE_URL."""
    cohere_api_key: SecretStr | None = None
    """Key of Cohere or a compatible service."""
    cohere_base_url: str = "https://api.cohere.com"
    """Address of Cohere or a compatible service."""
    cohere_model: str = "embed-english-v3.0"
    """Embedding model at Cohere."""
    cohere_rerank_model: str = "rerank-v3.5"
    """Reranking model at COHERE_BASE_URL."""

    askbook_answerer: AnswererChoice = "auto"
    """Who answers: extractive (the book's own sentences), model, or auto (the model where OPENAI_API_KEY is
    set)."""
    askbook_unsupported: UnsupportedChoice = "drop"
    """What becomes of a model's sentence that its source does not support: drop, or mark."""
    askbook_check: CheckChoice = "model"
    """Who decides on a model's sentence that the reader is not sure of: reader (alone), or model (asked once for
    all of them)."""
    agent_top_k: int = Field(default=5, ge=1, le=10)
    """Passages that an answer looks at."""
    agent_score_threshold: float = Field(default=0.0, ge=0, le=1)
    """The least relevance of a passage that answers, at every door; a request may ask for more."""
    agent_max_turns: int = Field(default=50, ge=1, le=50)
    """How many earlier turns of a thread count for the next question."""
    agent_system_prompt: str = Field(default="", max_length=4000)
    """What the model is told besides askbook's rules, which stay: whom it speaks to, in which language or tone."""
    agent_temperature: float = Field(default=0.0, ge=0, le=1)
    """The model's temperature."""
    agent_max_tokens: int | None = Field(default=None, ge=1)
    """The most tokens of a model's answer. Default: what the model allows."""
    askbook_embedding_seconds: float = Field(default=2.0, gt=0, le=600)
    """How long a service may take to embed a question; after that the book's words are searched alone."""
    askbook_retrieval_seconds: float = Field(default=3.0, gt=0, le=600)
    """How long a search may take."""
    askbook_generation_seconds: float = Field(default=60.0, gt=0, le=600)
    """How long the model may take for an answer, its retries included."""
    askbook_ask_seconds: float = Field(default=5.0, gt=0, le=600)
    """How long a question waits for a model's first words; then the book's own sentences answer. An answer sent
    whole has as long again to its end."""
    askbook_rest_seconds: float = Field(default=60.0, gt=0, le=3600)
    """How long a service that failed five times running is left alone before one call tries it again."""
    askbook_answer_seconds: float = Field(default=90.0, gt=0, le=3600)
    """How long a question may take in all."""

    askbook_rate_limit: int = Field(default=100, ge=0, le=1_000_000)
    """How many requests a key may make in a minute; 0 means any number."""
    redis_url: SecretStr | None = None
    """Redis (redis://…) that counts the requests of several processes together. Default: each in memory."""
    askbook_body_bytes: int = Field(default=262_144, ge=1024, le=100_000_000)
    """How large the body of a request may be."""
    askbook_body_seconds: float = Field(default=10.0, gt=0, le=600)
    """How long the body of a request may take to arrive."""

    askbook_host: str = Field(default="127.0.0.1", min_length=1)
    """Address that askbook serve listens on; anything but loopback needs a key."""
    askbook_port: int = Field(default=8000, ge=0, le=65535)
    """Port that askbook serve listens on."""
    askbook_public_url: str | None = Field(default=None, pattern=r"^https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~/-]*)?$")
    """Address that readers reach askbook serve at, as https://ask.example.org. Default: the one that they asked."""
    askbook_local_owner: bool | None = None
    """Whether whoever sits at the machine that serves needs no key: asks from loopback, with no sign of a proxy. 0:
    everybody does. Default: 1, and 0 where ASKBOOK_PUBLIC_URL is set."""
    askbook_cors_origins: Names = ()
    """Sites, comma-separated, whose pages may call the API, as https://example.org."""
    askbook_log_format: LogFormat = "console"
    """How the server logs: console, or json (one object a line)."""
    askbook_log_level: LogLevel = "info"
    """What the server logs: debug, info, warning, error."""
    askbook_worker: bool = True
    """Whether the server ingests as well; 0 leaves that to askbook worker on this and other machines."""
    askbook_webhook_secret: SecretStr | None = None
    """Secret that GitHub signs its webhooks with. Without one they are refused."""
    askbook_refresh_command: str | None = None
    """Command that the server runs in a book's folder before it ingests it, such as git pull --ff-only."""
    otel_exporter_otlp_endpoint: str | None = None
    """OpenTelemetry collector that the server sends its traces to. Default: none are made."""

    @field_validator("askbook_cors_origins", mode="before")
    @classmethod
    def _split(cls, names: object) -> object:
        return tuple(filter(None, (name.strip() for name in names.split(",")))) if isinstance(names, str) else names

    @field_validator("askbook_cors_origins", mode="after")
    @classmethod
    def _refuse_every_origin(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            if not re.fullmatch(r"https?://[A-Za-z0-9.:\[\]-]+", origin):
                raise ValueError(f"{origin} is no site: name each as https://example.org")
        return origins

    @field_validator("askbook_home", "askbook_embedder_folder", "askbook_reranker_folder", mode="after")
    @classmethod
    def _expand_folder(cls, folder: Path | None) -> Path | None:
        return _expand(folder) if folder else None

    @field_validator("askbook_reader", mode="before")
    @classmethod
    def _read_choice(cls, reader: object) -> object:
        if not isinstance(reader, str):
            return reader
        reader = reader.strip()
        if not reader:
            raise ValueError("it is empty; set bundled, none, or a folder with reader.onnx")
        return reader.lower() if reader.lower() in get_args(ReaderChoice) else reader

    @field_validator("askbook_reader", mode="after")
    @classmethod
    def _expand_reader(cls, reader: ReaderChoice | Path) -> ReaderChoice | Path:
        if not isinstance(reader, Path):
            return reader
        folder = _expand(reader)
        try:
            # Only whether the folder can be looked into. Whether the file is there is checked when it is opened.
            (folder / "reader.onnx").is_file()
        except OSError as error:
            raise ValueError(f"that folder cannot be looked into: {error.strerror}") from error
        return folder

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, dotenv_settings, InitSettingsSource(settings_cls, _read_toml(cls))


def _expand(folder: Path) -> Path:
    try:
        return folder.expanduser().absolute()
    except RuntimeError as error:
        raise ValueError(f"nobody's home is {folder.parts[0]}") from error


def load_settings(**given: Any) -> Settings:
    """The settings in force here, or an InputError that names the wrong one. Given values other than None win."""
    return _load({name: value for name, value in given.items() if value is not None})


def load_settings_of_home(home: Path) -> Settings:
    """The settings in force here, with all data in that folder."""
    return _load(dict.fromkeys(PLACE) | {"askbook_home": home})


def load_settings_of_file(file: Path) -> Settings:
    """The settings in force here, overridden by those of a file. Only the file says where the data lies."""
    try:
        named = {name.lower(): value for name, value in dotenv_values(file, interpolate=False).items() if value}
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the settings in {file} cannot be read", "Write them as in .env: NAME=value.") from error
    given = {name: value for name, value in named.items() if name in Settings.model_fields}
    if not given.keys() & PLACE:
        wanted = ", ".join(name.upper() for name in PLACE)
        raise InputError(f"{file} does not say where the data shall lie", f"Set some of {wanted} in it.")
    return _load({name: Settings.model_fields[name].default for name in PLACE} | given)


def _load(given: dict[str, Any]) -> Settings:
    try:
        return Settings(**given)
    except ValidationError as error:
        wrong = error.errors(include_input=False, include_url=False)[0]
        name = str(wrong["loc"][0]).upper()
        raise InputError(
            f"the setting {name} is wrong: {wrong['msg']}", "docs/settings.md lists every setting.", code="E001"
        ) from error


def setting_names() -> dict[str, str]:
    """Each setting's name in the environment, and what it is for."""
    return {name.upper(): about for name, about in read_field_docs(Settings).items()}


def _read_toml(settings_cls: type[Settings]) -> dict[str, Any]:
    """`[settings]` of the askbook.toml in the working folder: the same names, in lower case."""
    path = Path("askbook.toml")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("settings", {})
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(
            f"askbook.toml cannot be read: {error}", "Mend the file, or run askbook from another folder.", code="E001"
        ) from error
    if not isinstance(table, dict):
        raise InputError("askbook.toml: settings is not a table", "Write [settings] on a line of its own.", code="E001")
    for name in table:
        if name not in settings_cls.model_fields:
            raise InputError(
                f"askbook.toml sets {name!r} under [settings], which askbook does not know",
                "docs/settings.md lists every setting.",
                code="E001",
            )
    return dict(table)
