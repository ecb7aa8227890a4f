"""Everything that can be set, as values: from the environment, `.env`, and `[settings]` in `askbook.toml`, in this order."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal

from platformdirs import user_data_path
from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from askbook.errors import InputError

EmbedderChoice = Literal["local", "openai", "cohere", "none"]
ConfidenceChoice = Literal["calibrated", "raw"]


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_file=".env", extra="ignore", frozen=True)

    askbook_home: Path = Field(
        default=user_data_path("askbook", appauthor=False), description="Folder that holds askbook's data."
    )
    database_url: SecretStr | None = Field(
        default=None,
        description="PostgreSQL (postgresql://…) or SQLite (sqlite:///…). Default: a SQLite file in ASKBOOK_HOME.",
    )
    qdrant_url: str | None = Field(
        default=None, description="Qdrant server. Default: Qdrant Edge inside the process, on disk in ASKBOOK_HOME."
    )
    qdrant_api_key: SecretStr | None = Field(default=None, description="Key of the Qdrant server.")
    qdrant_collection_name: str = Field(
        default="askbook", description="Collection that holds the chunks.", pattern=r"^[A-Za-z0-9_-]{1,64}$"
    )
    askbook_embedder: EmbedderChoice = Field(
        default="local",
        description="Who embeds: local (MiniLM on this machine), openai, cohere, or none (keywords only).",
    )
    askbook_embedder_folder: Path | None = Field(
        default=None, description="Folder with model.onnx and tokenizer.json to use in place of the local MiniLM."
    )
    askbook_embedder_threads: int = Field(
        default=0, description="Threads of the local embedder; 0 means one for each core.", ge=0, le=256
    )
    askbook_confidence: ConfidenceChoice = Field(
        default="calibrated",
        description="What scores and confidence mean: calibrated (a measured chance), or raw (the embedder's cosine, which then also decides the order).",
    )
    openai_api_key: SecretStr | None = Field(default=None, description="Key of OpenAI or a compatible service.")
    openai_base_url: str = Field(
        default="https://api.openai.com/v1", description="Address of OpenAI or a compatible service."
    )
    openai_embedding_model: str = Field(
        default="text-embedding-3-small", description="Embedding model at OPENAI_BASE_URL."
    )
    cohere_api_key: SecretStr | None = Field(default=None, description="Key of Cohere.")
    cohere_base_url: str = Field(default="https://api.cohere.com", description="Address of Cohere.")
    cohere_model: str = Field(default="embed-english-v3.0", description="Embedding model at Cohere.")

    @field_validator("askbook_home", "askbook_embedder_folder", mode="after")
    @classmethod
    def _expand(cls, folder: Path | None) -> Path | None:
        return folder.expanduser().absolute() if folder else None

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


def load_settings() -> Settings:
    """The settings in force here, or an InputError that names the one that is wrong."""
    try:
        return Settings()
    except ValidationError as error:
        wrong = error.errors(include_input=False, include_url=False)[0]
        name = str(wrong["loc"][0]).upper()
        raise InputError(
            f"the setting {name} is wrong: {wrong['msg']}", "docs/settings.md lists every setting."
        ) from error


def setting_names() -> dict[str, str]:
    """Each setting's name in the environment, and what it is for."""
    return {name.upper(): field.description or "" for name, field in Settings.model_fields.items()}


def _read_toml(settings_cls: type[Settings]) -> dict[str, Any]:
    """`[settings]` of the askbook.toml in the working folder: the same names, in lower case."""
    path = Path("askbook.toml")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("settings", {})
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(
            f"askbook.toml cannot be read: {error}", "Mend the file, or run askbook from another folder."
        ) from error
    if not isinstance(table, dict):
        raise InputError("askbook.toml: settings is not a table", "Write [settings] on a line of its own.")
    for name in table:
        if name not in settings_cls.model_fields:
            raise InputError(
                f"askbook.toml sets {name!r} under [settings], which askbook does not know",
                "docs/settings.md lists every setting.",
            )
    return dict(table)
