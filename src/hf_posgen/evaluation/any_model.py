"""Any causal language model of transformers: found, checked and opened, or refused in one sentence."""

import inspect
import json
from dataclasses import dataclass
from pathlib import Path

import torch
from huggingface_hub import hf_hub_download
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from torch import nn
from transformers import CONFIG_MAPPING, MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.modeling_outputs import CausalLMOutput

from ..common.quiet import without_bars, without_hints
from ..model.encoding_registry import by_rope_type
from ..run.components import component_name, table_rows
from ..run.folder import MODEL_CONFIG
from .identity import model_digest

LIMITS = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length", "seq_length", "n_ctx")


@dataclass
class AnyModel:
    """A model that is open. name: as it was typed. tokenizer: None where there is none. revision: the commit; None for a
    folder. digest: of its weights, configuration and code."""

    name: str
    model: nn.Module
    tokenizer: object | None
    revision: str | None
    digest: str

    @property
    def config(self):
        """The configuration of the part that reads text."""
        return self.model.config.get_text_config()

    @property
    def limit(self) -> int | None:
        """How many tokens it was made for; None where its configuration has no limit (ALiBi, recurrences)."""
        if self.config.model_type == "posgen":
            return table_rows(self.config.to_dict())
        values = (getattr(self.config, name, None) for name in LIMITS)
        return next((value for value in values if isinstance(value, int) and value > 0), None)

    @property
    def goes_past(self) -> bool:
        """Whether it can read past its limit: rotations are computed for any position, a table ends."""
        return bool(getattr(self.config, "rope_parameters", None))

    @property
    def encoding(self) -> str:
        """Its positional encoding by our name, as far as the config tells."""
        if self.config.model_type == "posgen":
            return component_name(self.config.to_dict(), "position_encoding")
        if self.config.model_type in ("bloom", "mpt") or getattr(self.config, "alibi", False):
            return "alibi"
        if rope := getattr(self.config, "rope_parameters", None):
            return by_rope_type().get(rope.get("rope_type"), "rope")
        words = self.model.get_input_embeddings()
        tables = [module for module in self.model.modules() if isinstance(module, nn.Embedding) and module is not words]
        return "learned" if tables else "unknown"

    @property
    def head_size(self) -> int | None:
        heads, width = (getattr(self.config, name, None) for name in ("num_attention_heads", "hidden_size"))
        return getattr(self.config, "head_dim", None) or (width // heads if heads and width else None)


class Translated(nn.Module):
    """A model that reads a task's tokens and answers in them, as the evaluation expects of it.

    ids: the model's own token of each token of the task. prefix: what it begins every text with."""

    def __init__(self, model: nn.Module, ids: list[int], prefix: tuple[int, ...] = ()):
        super().__init__()
        self.model = model
        self.register_buffer("ids", torch.tensor(ids))
        self.register_buffer("prefix", torch.tensor(prefix, dtype=torch.long))
        self.selects = "logits_to_keep" in inspect.signature(model.forward).parameters

    def forward(self, input_ids, use_cache=False, logits_to_keep=None, **inputs) -> CausalLMOutput:
        """Logits (N, places, the task's vocabulary) at the places `logits_to_keep` (a tensor) of `input_ids` (N, T)."""
        tokens = torch.cat([self.prefix.expand(len(input_ids), -1), self.ids[input_ids]], 1)
        places = logits_to_keep + len(self.prefix)
        inputs |= {"logits_to_keep": places} if self.selects else {}
        inputs |= {} if "position_ids" in inputs else {"attention_mask": torch.ones_like(tokens)}  # else one document
        logits = self.model(input_ids=tokens, use_cache=False, **inputs).logits
        return CausalLMOutput(logits=(logits if self.selects else logits[:, places])[..., self.ids])


def open_model(name: str, *, revision: str | None = None, trust_remote_code: bool = False, device=None) -> AnyModel:
    """A model from a folder or the Hub, in evaluation mode. Raises `ValueError` for what is no causal language model that
    can be opened as it is, `OSError` where the Hub can't be reached."""
    file = find_file(name, MODEL_CONFIG, revision)
    commit = None if Path(name).is_dir() else file.parent.name
    _check_description(name, json.loads(file.read_text(encoding="utf-8")), trust_remote_code)
    where = {"revision": commit or "main", "trust_remote_code": trust_remote_code}
    with without_bars(), without_hints():
        config = AutoConfig.from_pretrained(name, **where)
        _check_kind(name, config)
        try:
            model, loaded = AutoModelForCausalLM.from_pretrained(name, config=config, output_loading_info=True, **where)
        except OSError as error:
            raise ValueError(f"the weights of {name} can't be opened: {error}") from None
        tokenizer = _tokenizer(name, where)
    if loaded["missing_keys"]:
        raise ValueError(f"the checkpoint {name} holds no whole model: it lacks {sorted(loaded['missing_keys'])[0]}")
    if device is None:
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = model.eval().to(device)
    _check_causal(name, model)
    return AnyModel(name, model, tokenizer, commit, model_digest(model, file))


def find_file(name: str, path: str, revision: str | None = None) -> Path:
    """A file of a model in a folder or on the Hub (from where it is fetched). Raises as `open_model` does, and
    `EntryNotFoundError` where a Hub model doesn't hold it, unless it is the config that every model has."""
    if Path(name).is_dir():
        if not (Path(name) / path).is_file():
            raise ValueError(f"{name} is no model: it holds no {path}")
        return Path(name) / path
    try:
        return Path(hf_hub_download(name, path, revision=revision))
    except HFValidationError:
        raise ValueError(f"{name} is neither a folder nor the name of a model on the Hub") from None
    except GatedRepoError:
        raise ValueError(f"{name} is gated: accept its terms on the Hub, then log in with `hf auth login`") from None
    except RevisionNotFoundError:
        raise ValueError(f"{name} has no revision {revision!r}") from None
    except RepositoryNotFoundError:
        raise ValueError(f"{name} is neither a folder nor a model on the Hub that this token may see") from None
    except LocalEntryNotFoundError:
        raise OSError(f"{name} is no folder, and the Hub can't be reached for it: check the network") from None
    except EntryNotFoundError:
        if path != MODEL_CONFIG:
            raise
        raise ValueError(f"{name} is no model of transformers: it holds no config.json") from None


def _check_description(name: str, described: dict, trusted: bool) -> None:
    """Refuse a kind that transformers doesn't know, and code that comes with a model unless that may run."""
    kind, own = described.get("model_type"), described.get("auto_map", {})
    if kind in CONFIG_MAPPING:
        return
    if "AutoModelForCausalLM" not in own:
        raise ValueError(f"{name} is of the type {kind!r}, and this transformers knows no causal language model of it")
    if not trusted:
        files = sorted(
            {f"{value.split('--')[-1].split('.')[0]}.py" for value in own.values() if isinstance(value, str)}
        )
        raise ValueError(
            f"{name} runs code of its own ({', '.join(files)}): read it, then allow it with --trust-remote-code"
        )


def _check_kind(name: str, config) -> None:
    if getattr(config, "is_encoder_decoder", False) or (
        config.model_type in CONFIG_MAPPING and type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING
    ):
        raise ValueError(
            f"{name} is a {config.model_type}, and that is no decoder: only causal language models are evaluated"
        )


def _tokenizer(name: str, where: dict):
    try:
        return AutoTokenizer.from_pretrained(name, **where)
    except (OSError, ValueError, KeyError):
        return None


@torch.no_grad()
def _check_causal(name: str, model: nn.Module) -> None:
    """Refuse a model that reads ahead, by trying: another last token may change nothing before it."""
    size = model.get_input_embeddings().num_embeddings
    tokens = torch.randint(size, (8,), generator=torch.Generator().manual_seed(0)).repeat(2, 1)
    tokens[1, -1] = (tokens[1, -1] + 1) % size
    logits = model(input_ids=tokens.to(model.device), use_cache=False).logits[:, :-1].float()
    gap, scale = (logits[0] - logits[1]).abs().max(), logits.abs().max()
    if not torch.isfinite(scale):
        raise ValueError(f"{name} answers with what is no number")
    if gap > max(1e-5, 2 * torch.finfo(model.dtype).eps) * scale:
        raise ValueError(f"{name} reads ahead, as encoders do: only causal language models are evaluated")
