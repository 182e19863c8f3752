"""Runs from nested dicts: what is completed, what is refused, and what makes two runs the same."""

import dataclasses
import math
import pickle

import pytest
import yaml

from hf_posgen.common.yaml_text import parse_yaml
from hf_posgen.model.configuration_posgen import COMPONENTS, PosGenConfig
from hf_posgen.run.build import build_run, identity, merge, model_fields, override, run_hash, to_tree
from hf_posgen.run.components import arm_name
from hf_posgen.run.schema import COMPONENTS as SCHEMA_COMPONENTS
from hf_posgen.run.schema import EvaluationConfig, TrainConfig


def test_model_fields_are_those_of_the_config():
    """They are read from its source, so that --help need not import it."""
    assert SCHEMA_COMPONENTS == COMPONENTS
    defaults = {field.name: field.default for field in dataclasses.fields(PosGenConfig)}
    ours = set(PosGenConfig.__annotations__) - {"vocab_size", "bos_token_id", "eos_token_id", "pad_token_id"}
    assert set(model_fields()) == ours - {"posgen_version"}
    for name, (_, default) in model_fields().items():
        assert name == "max_position_embeddings" or default == defaults[name]


def test_every_default_is_written_down_and_builds_the_same_run():
    run = build_run(
        {"model": {"position_encoding": "alibi"}, "task": "fixed_offset", "train": {"learning_rate": "1e-4"}}
    )
    tree = to_tree(run)
    assert tree["model"]["position_encoding"] == {"name": "alibi", "slopes": "paper"}
    assert tree["model"]["max_position_embeddings"] == 1025 and tree["task"]["offset"] == 3
    assert tree["train"]["learning_rate"] == 1e-4 and run.arm == "alibi"
    again = build_run(yaml.safe_load(yaml.safe_dump(tree)))
    assert again == run and run_hash(again) == run_hash(run)


def test_identity_is_what_shapes_weights_and_rows():
    run = build_run({})
    for same in ({"keep": 5}, {"save_every": 3}, {"log_every": 1}, {"trackers": ["wandb"]}):
        assert identity(to_tree(build_run({"train": same}))) == identity(to_tree(run))
    for other in (
        {"train": {"steps": 7}},
        {"seed": 1},
        {"arm": "x"},
        {"evaluation": {"count": 9}},
        {"task": "delay_copy"},
    ):
        assert run_hash(build_run(other)) != run_hash(run)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"modle": {}}, "unknown key 'modle' .did you mean 'model'"),
        ({"model": {"position_encodng": "rope"}}, "did you mean 'model.position_encoding'"),
        ({"model": 3}, "model is 3; it must be a mapping"),
        ({"model": {"position_encoding": "rpe"}}, "did you mean 'rope'"),
        ({"model": {"position_encoding": {"slopes": "learned"}}}, "with a 'name'"),
        ({"model": {"position_encoding": {"name": "rope", "bse": 3}}}, "did you mean 'base'"),
        ({"model": {"hidden_size": 65}}, "not divisible"),
        ({"model": {"hidden_size": "wide"}}, "hidden_size"),
        ({"train": {"stpes": 3}}, "did you mean 'train.steps'"),
        ({"train": {"steps": 0}}, "train.steps is 0; it must be at least 1"),
        ({"train": {"steps": "many"}}, "train.steps is 'many'; it must be a whole number"),
        ({"train": {"steps": 1.5}}, "train.steps is 1.5; it must be a whole number"),
        ({"train": {"cpu": 1}}, "train.cpu is 1; it must be true or false"),
        ({"train": {"trackers": "wandb"}}, "a list of names"),
        ({"train": {"schedule": "linear"}}, "allowed: constant, cosine"),
        ({"evaluation": {"splits": ["fart"]}}, "evaluation.splits is 'fart'; allowed: train, validation"),
        ({"evaluation": {"count": 0}}, "at least 1"),
        ({"task": "fixd_offset"}, "did you mean 'fixed_offset'"),
        ({"task": {"name": "fixed_offset", "ofset": 1}}, "did you mean 'offset'"),
        ({"task": {"name": "fixed_offset", "test_lengths": [8, 32]}}, "training sees"),
        ({"task": {"name": "delay_copy", "window": 64, "d_max": 60}}, "60"),
        ({"seed": "one"}, "seed is 'one'; it must be a whole number"),
        ({"seed": -1}, "seed is -1; it must be at least 0"),
        (
            {"model": {"position_encoding": "learned", "max_position_embeddings": 64}},
            "the learned table has 64 rows.*length 1024 needs 1025",
        ),
    ],
)
def test_refused_in_one_sentence(tree, message):
    with pytest.raises(ValueError, match=message) as error:
        build_run(tree)
    assert "\n" not in str(error.value)


def test_a_short_table_is_accepted_where_its_end_is_defined():
    model = {"position_encoding": "learned", "max_position_embeddings": 64}
    assert build_run({"model": model | {"out_of_range": "clamp"}})
    assert build_run({"model": model, "evaluation": {"splits": ["test"]}})
    assert build_run({"model": model | {"position_encoding": "rope"}})


def test_a_spec_is_refined_and_keeps_its_name():
    tree = {"model": {"position_encoding": "alibi"}}
    assert override(tree, "model.position_encoding.slopes", "learned") == {
        "model": {"position_encoding": {"name": "alibi", "slopes": "learned"}}
    }
    long = {"model": {"position_encoding": {"name": "rope", "base": 500.0}}}
    assert override(long, "model.position_encoding.share", "0.5")["model"]["position_encoding"]["base"] == 500.0
    assert override(long, "model.position_encoding", "alibi")["model"]["position_encoding"] == "alibi"
    other = merge(long, {"model": {"position_encoding": {"name": "alibi"}}})
    assert other["model"]["position_encoding"] == {"name": "alibi"}
    assert long["model"]["position_encoding"] == {"name": "rope", "base": 500.0}


def test_arm_names_say_what_is_special():
    layers = [{"name": "rope"}, {"name": "none"}]
    run = build_run({"model": {"position_encoding": layers, "logit_scale": "log_n", "position_sampler": "shifted"}})
    assert run.arm == arm_name(run.model) == "rope+none-shifted-log_n"


def test_what_the_model_would_refuse_is_refused_before_a_folder_is_made():
    with pytest.raises(ValueError, match="head_dim 65 .* rotates 65 channels"):
        build_run({"model": {"hidden_size": 65, "num_attention_heads": 1}})


def test_a_run_builds_its_task_once_and_travels_without_it():
    run = build_run({"task": {"name": "fixed_offset", "offset": 2}})
    assert run.built_task is run.built_task and run.built_task.offset == 2
    sent = pickle.loads(pickle.dumps(run))
    assert sent == run and "built_task" not in vars(sent) and sent.built_task == run.built_task


NEVER = [
    ({"train": {"stop_at": 2}}, "train.stop_at is 2.0; it must be at least 0 and at most 1"),
    ({"train": {"learning_rate": math.inf}}, "train.learning_rate is inf; it must be a finite number"),
    ({"train": {"clip": "nan"}}, "train.clip is 'nan'; it must be a finite number"),
    ({"train": {"weight_decay": -0.1}}, "train.weight_decay is -0.1; it must be at least 0"),
    ({"train": {"steps": True}}, "train.steps is True; it must be a whole number"),
    ({"evaluation": {"splits": ["test", "test"]}}, "names a split twice"),
    ({"seed": 2**32}, "seed is 4294967296; it must be at least 0 and at most 2147483647"),
    ({"model": {"hidden_act": "nope"}}, "hidden_act is 'nope'; allowed: .*gelu"),
    ({"model": {"hidden_dropout": 1.5}}, "hidden_dropout is 1.5; it must be at least 0 and below 1"),
    ({"model": {"attention_dropout": -0.1}}, "attention_dropout is -0.1; it must be at least 0 and below 1"),
    ({"model": {"initializer_range": 0}}, "initializer_range is 0.0; it must be a positive number"),
    ({"model": {"embedding_initializer_range": -1}}, "embedding_initializer_range is -1; it must be a positive number"),
    ({"model": {"norm_eps": 0}}, "norm_eps is 0.0; it must be a positive number"),
    ({"model": {"norm_eps": ".inf"}}, "model.norm_eps is '.inf'; it must be a finite number"),
    ({"model": {"num_hidden_layers": True}}, "model.num_hidden_layers is True; it must be a whole number"),
    ({"model": {"tie_word_embeddings": 3}}, "model.tie_word_embeddings is 3; it must be true or false"),
]


@pytest.mark.parametrize(("tree", "message"), NEVER, ids=str)
def test_values_that_can_never_be_are_refused_before_anything_runs(tree, message):
    with pytest.raises(ValueError, match=message) as error:
        build_run(tree)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("section", [TrainConfig, EvaluationConfig])
def test_every_number_of_a_section_has_bounds(section):
    for field in dataclasses.fields(section):
        if field.type in (int, float, float | None):
            least, most = field.metadata["least"], field.metadata["most"]
            with pytest.raises(ValueError, match=f"{section.name}.{field.name} is .*at least {least}"):
                section(**{field.name: least - 1})
            if most is not None:
                with pytest.raises(ValueError, match=f"at most {most}"):
                    section(**{field.name: most + 1})


def test_the_documented_words_of_precision_are_taken():
    for text in ("{train: {precision: no}}", "{train: {precision: 'no'}}"):
        assert build_run(parse_yaml(text)).train.precision == "no"
        assert build_run(yaml.safe_load(text)).train.precision == "no", "YAML 1.1 reads False"
    assert build_run({"train": {"cpu": "no"}}).train.cpu is False
