"""The recipes are configurations that accelerate reads, and name a layer that exists."""

from pathlib import Path

import pytest
from accelerate.commands.config.config_args import load_config_from_file

from hf_posgen.model import modeling_posgen

RECIPES = sorted((Path(__file__).parents[2] / "scripts" / "accelerate").glob("*.yaml"))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_accelerate_reads_it(recipe):
    config = load_config_from_file(str(recipe))
    assert config.num_processes >= 2 and config.num_processes % config.num_machines == 0
    if config.fsdp_config:
        assert hasattr(modeling_posgen, config.fsdp_config["fsdp_transformer_layer_cls_to_wrap"])
        assert config.fsdp_config["fsdp_version"] == 2
