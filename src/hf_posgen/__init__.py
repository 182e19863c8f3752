"""hf_posgen: does a positional encoding generalise to lengths and distances it never saw, or did it memorise?

Importing the package registers its classes with transformers' Auto classes, so that `AutoModelForCausalLM` opens a
`posgen` checkpoint. While Python runs the package as a command, registration waits for `register_auto_classes()`, so
that `posgen --help` need not import torch.
"""

import importlib
import sys
from pathlib import Path

__version__ = "0.1.0"

# Public names, imported when first asked for. (`sweep` and `report` are modules: hf_posgen.sweep.sweep.)
_HOMES = {
    "PosGenConfig": "model.configuration_posgen",
    "PosGenModel": "model.modeling_posgen",
    "PosGenForCausalLM": "model.modeling_posgen",
    "PositionEncoding": "model.position_encoding",
    "register": "model.encoding_registry",
    "register_figure": "report.figures",
    "capabilities": "model.capabilities",
    "load_task": "tasks",
    "register_task": "tasks",
    "train": "training",
    "evaluate": "evaluation",
    "push": "hub",
    "analyze": "analysis",
    "register_analysis": "analysis",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'hf_posgen' has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)


def register_auto_classes() -> None:
    """Tell transformers about our config and models."""
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

    from .model.configuration_posgen import PosGenConfig
    from .model.modeling_posgen import PosGenForCausalLM, PosGenModel

    AutoConfig.register("posgen", PosGenConfig, exist_ok=True)
    AutoModel.register(PosGenConfig, PosGenModel, exist_ok=True)
    AutoModelForCausalLM.register(PosGenConfig, PosGenForCausalLM, exist_ok=True)
    PosGenConfig.register_for_auto_class()
    PosGenModel.register_for_auto_class("AutoModel")
    PosGenForCausalLM.register_for_auto_class("AutoModelForCausalLM")


def _runs_as_command() -> bool:
    return sys.argv[:1] == ["-m"] or Path(sys.argv[0] if sys.argv else "").name == "posgen"


if not _runs_as_command():
    register_auto_classes()
