"""A GPT-style decoder whose positional encoding, sampler, logit scale and mixers are chosen by the config."""

from dataclasses import replace

import torch
from torch import nn
from transformers import GenerationMixin, PreTrainedModel
from transformers import initialization as init
from transformers.activations import ACT2FN
from transformers.cache_utils import Cache, DynamicCache
from transformers.generation.configuration_utils import GenerationMode
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_outputs import BaseModelOutputWithPast, CausalLMOutputWithPast
from transformers.processing_utils import Unpack
from transformers.utils import TransformersKwargs, can_return_tuple
from transformers.utils.deprecation import deprecate_kwarg
from transformers.utils.generic import merge_with_config_defaults
from transformers.utils.output_capturing import OutputRecorder, capture_outputs

from .configuration_posgen import PosGenConfig
from .context import build_context
from .encoding_registry import ENCODINGS, build_encoding
from .external import carry_external
from .logit_scale import LogitScale
from .mixer_recurrent import Recurrence
from .mixer_registry import build_mixer
from .mixer_softmax import SoftmaxAttention
from .posgen_cache import adopt, recall
from .position_encoding import PositionEncoding
from .position_sampler import build_sampler
from .validation import bias_kind, complete_config, refuse_implementation


def _norm(config: PosGenConfig) -> nn.Module:
    kinds = {"layernorm": nn.LayerNorm, "rmsnorm": nn.RMSNorm}
    return nn.Identity() if config.norm == "none" else kinds[config.norm](config.hidden_size, eps=config.norm_eps)


def _dropout(config: PosGenConfig) -> nn.Module:
    return nn.Dropout(config.hidden_dropout) if config.hidden_dropout else nn.Identity()


class PosGenMLP(nn.Module):
    """Plain: down(act(up(x))); gated: down(act(gate(x)) · up(x))."""

    def __init__(self, config: PosGenConfig):
        super().__init__()
        sizes = (config.hidden_size, config.intermediate_size)
        if config.mlp == "gated":
            self.gate_proj = nn.Linear(*sizes, bias=config.mlp_bias)
        self.up_proj = nn.Linear(*sizes, bias=config.mlp_bias)
        self.down_proj = nn.Linear(*sizes[::-1], bias=config.mlp_bias)
        self.act_fn = ACT2FN[config.hidden_act]
        self.gated = config.mlp == "gated"

    def forward(self, x):
        up = self.up_proj(x)
        return self.down_proj(self.act_fn(self.gate_proj(x)) * up if self.gated else self.act_fn(up))


class PosGenDecoderLayer(GradientCheckpointingLayer):
    """x + mixer(norm(x)), then x + mlp(norm(x)); without an MLP the second half is absent."""

    def __init__(self, config: PosGenConfig, layer_idx: int, encoding_spec: dict | None):
        super().__init__()
        self.self_attn = build_mixer(config.per_layer("mixer")[layer_idx], config, layer_idx, encoding_spec)
        self.input_layernorm = _norm(config)
        self.mlp = None if config.mlp == "none" else PosGenMLP(config)
        self.post_attention_layernorm = None if config.mlp == "none" else _norm(config)
        self.dropout = _dropout(config)

    def forward(self, hidden_states, *tables, context, cache=None):
        mixed, _ = self.self_attn(self.input_layernorm(hidden_states), *tables, context=context, cache=cache)
        if context.logits_to_keep:
            hidden_states, mixed = (x[:, -context.logits_to_keep :] for x in (hidden_states, mixed))
        hidden_states = hidden_states + self.dropout(mixed)
        if self.mlp is None:
            return hidden_states
        return hidden_states + self.dropout(self.mlp(self.post_attention_layernorm(hidden_states)))


class PosGenPreTrainedModel(PreTrainedModel):
    config: PosGenConfig
    config_class = PosGenConfig
    base_model_prefix = "model"
    supports_gradient_checkpointing = True
    _no_split_modules = ["PosGenDecoderLayer"]
    _supports_sdpa = True
    _supports_flex_attn = True
    _supports_attention_backend = False
    _can_compile_fullgraph = True
    _can_record_outputs = {
        "hidden_states": PosGenDecoderLayer,
        "attentions": OutputRecorder(SoftmaxAttention, index=1),
    }

    def __init__(self, config: PosGenConfig, *args, **kwargs):
        complete_config(config)
        super().__init__(config, *args, **kwargs)

    def save_pretrained(self, save_directory, *args, **kwargs):
        """As in transformers; a third party's encoding travels along. Raises `ValueError` where its file can't."""
        super().save_pretrained(save_directory, *args, **kwargs)
        carry_external(self.config, save_directory)

    @torch.no_grad()
    def _init_weights(self, module):
        std = self.config.initializer_range
        if isinstance(module, nn.Linear):
            init.normal_(module.weight, std=std)
            if module.bias is not None:
                init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            wide = self.config.embedding_initializer_range
            init.normal_(module.weight, std=std if wide is None else wide)
        elif isinstance(module, nn.LayerNorm | nn.RMSNorm):
            init.ones_(module.weight)
            if getattr(module, "bias", None) is not None:
                init.zeros_(module.bias)
        elif isinstance(module, PositionEncoding | LogitScale | Recurrence):
            module.reset_parameters()


class PosGenModel(PosGenPreTrainedModel):
    """The decoder without its head."""

    def __init__(self, config: PosGenConfig):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size, config.pad_token_id)
        spec = config.position_encoding
        shared = isinstance(spec, dict) and ENCODINGS[spec["name"]].shared
        self.position_encoding = build_encoding(spec, config) if shared else None
        specs = [None] * config.num_hidden_layers if shared else config.per_layer("position_encoding")
        self.layers = nn.ModuleList(PosGenDecoderLayer(config, i, specs[i]) for i in range(config.num_hidden_layers))
        self.norm = _norm(config)
        self.dropout = _dropout(config)
        self.sampler = build_sampler(config.position_sampler, config)
        self.samples = config.position_sampler["name"] != "sequential"
        self.sample_in_evaluation = False
        self.gradient_checkpointing = False
        encodings = [m for m in self.modules() if isinstance(m, PositionEncoding)]
        self.needs_lengths = any(encoding.depends_on_length for encoding in encodings)
        self.bias_kinds = {bias_kind(encoding) for encoding in encodings}
        refuse_implementation(config, self.bias_kinds)
        self.post_init()

    @deprecate_kwarg("past_key_values", "5.40.0", new_name="cache")
    @merge_with_config_defaults
    @capture_outputs
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.LongTensor | None = None,
        cache: Cache | None = None,
        inputs_embeds: torch.Tensor | None = None,
        use_cache: bool | None = None,
        positions: torch.LongTensor | None = None,
        logits_to_keep: int = 0,
        **kwargs: Unpack[TransformersKwargs],
    ) -> BaseModelOutputWithPast:
        """`position_ids` (B, L) is each token's index in its document: where it doesn't grow, a new one starts. `positions`
        (B or 1, L) says where the encoding shall believe the tokens stand; without it, the sampler decides in training.
        `logits_to_keep`: return the hidden states of so many last tokens alone, or of all (0); the last layer then computes
        no others."""
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("give exactly one of input_ids and inputs_embeds")
        elsewhere = [name for name in ("cu_seq_lens_q", "seq_idx") if kwargs.get(name) is not None]
        if elsewhere and position_ids is None:
            raise ValueError(
                f"{elsewhere[0]} says where documents begin; this model reads that from position_ids: pass them as well"
            )
        refuse_implementation(self.config, self.bias_kinds)
        if inputs_embeds is None:
            inputs_embeds = self.embed_tokens(input_ids)
        sampling = self.samples and (self.training or self.sample_in_evaluation)
        if use_cache and cache is None and positions is None and not sampling:
            cache = DynamicCache(config=self.config)
        if cache is not None:
            cache = adopt(cache, self.config)
        context = build_context(
            inputs_embeds,
            attention_mask=attention_mask,
            position_ids=position_ids,
            positions=positions,
            cache=cache,
            sampler=self.sampler if sampling else None,
            needs_lengths=self.needs_lengths,
        )
        kept = slice(-logits_to_keep if logits_to_keep else None, None)
        if self.needs_lengths and cache is not None:
            kept = torch.arange(inputs_embeds.shape[1], device=inputs_embeds.device)[kept] + context.visible.offset
            inputs_embeds, context, logits_to_keep = recall(cache, inputs_embeds), context.whole(), 0
        layer_cache = None if self.needs_lengths else cache
        encoding, tables = self.position_encoding, ()
        hidden_states = inputs_embeds
        if encoding is not None:
            context = replace(context, encoding=encoding)
            tables = encoding(encoding.tables, context.queries, context.keys)
            hidden_states = encoding(encoding.embed, hidden_states, context.queries, *tables)
        hidden_states = self.dropout(hidden_states)
        for i, layer in enumerate(self.layers):
            if logits_to_keep and i == len(self.layers) - 1:
                context = context.of_last(logits_to_keep)
            hidden_states = layer(hidden_states, *tables, context=context, cache=layer_cache)
        return BaseModelOutputWithPast(last_hidden_state=self.norm(hidden_states[:, kept]), cache=cache)


RECORDED = ("output_hidden_states", "output_attentions")


def _last_kept(logits_to_keep: int | torch.Tensor, length: int) -> int:
    """Return how many of the last tokens hold all whose logits are kept; 0: all, or known to the compiled graph alone."""
    if isinstance(logits_to_keep, int):
        return logits_to_keep
    if torch.compiler.is_compiling() or logits_to_keep.numel() == 0:
        return 0
    return length - int(logits_to_keep.min())


def _items(labels: torch.Tensor, count: int | torch.Tensor | None) -> int | torch.Tensor:
    """Return what the summed loss is divided by: how many labels are scored, by the caller's count if there is one. Where
    nothing is, 1: the loss is then 0, with zero gradients."""
    if count is None:
        count = (labels != -100).sum()
    return count + (count == 0)


class PosGenForCausalLM(PosGenPreTrainedModel, GenerationMixin):
    """The decoder with a language-model head; labels are shifted inside, -100 is not scored."""

    _tied_weights_keys = {"lm_head.weight": "model.embed_tokens.weight"}

    def __init__(self, config: PosGenConfig):
        super().__init__(config)
        self.model = PosGenModel(config)
        self.vocab_size = config.vocab_size
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    @deprecate_kwarg("past_key_values", "5.40.0", new_name="cache")
    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.LongTensor | None = None,
        cache: Cache | None = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.LongTensor | None = None,
        use_cache: bool | None = None,
        logits_to_keep: int | torch.Tensor = 0,
        positions: torch.LongTensor | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> CausalLMOutputWithPast:
        length = (input_ids if inputs_embeds is None else inputs_embeds).shape[1]
        last = _last_kept(logits_to_keep, length)
        if any(kwargs.get(name, getattr(self.config, name, None)) not in (None, False) for name in RECORDED):
            last = 0  # who looks at every layer looks at every token
        outputs = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            cache=cache,
            inputs_embeds=inputs_embeds,
            use_cache=use_cache,
            positions=positions,
            logits_to_keep=last,
            **kwargs,
        )
        hidden = outputs.last_hidden_state
        if isinstance(logits_to_keep, int):
            kept = kept_hidden = slice(-logits_to_keep if logits_to_keep else None, None)
        else:
            kept, kept_hidden = logits_to_keep, logits_to_keep - (length - hidden.shape[1])
        logits = self.lm_head(hidden[:, kept_hidden])
        loss = None
        if labels is not None:  # the logits at t are scored on the label at t + 1
            kwargs.setdefault("shift_labels", nn.functional.pad(labels, (-1, 1), value=-100)[:, kept].contiguous())
            kwargs["num_items_in_batch"] = _items(kwargs["shift_labels"], kwargs.get("num_items_in_batch"))
            loss = self.loss_function(logits=logits, labels=labels, vocab_size=self.config.vocab_size, **kwargs)
        return CausalLMOutputWithPast(
            loss=loss,
            logits=logits,
            cache=outputs.cache,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )

    def _validate_generation_mode(self, generation_mode, generation_config, generation_mode_kwargs):
        """Raise `ValueError` where an assistant's tokens can't be checked: many are checked in one pass, the wrong ones cut
        off, and that must give what greedy decoding gives."""
        reason = self._why_no_assistant() if generation_mode == GenerationMode.ASSISTED_GENERATION else None
        if reason is not None:
            raise ValueError(
                f"this model can't check the tokens of an assistant or of a prompt look-up: {reason}; generate without one"
            )
        super()._validate_generation_mode(generation_mode, generation_config, generation_mode_kwargs)

    def _why_no_assistant(self) -> str | None:
        for spec in self.config.per_layer("position_encoding"):
            if ENCODINGS[spec["name"]].depends_on_length:
                return (
                    f"position_encoding {spec['name']!r} depends on the length, so that a token checked together with "
                    "later ones isn't encoded as it is alone"
                )
        for spec in self.config.per_layer("mixer"):
            if spec["name"] != "softmax":
                return f"mixer {spec['name']!r} keeps no past that wrong tokens could be cut off from"
        return None

    @staticmethod
    def create_masks_for_generate(config, inputs_embeds, attention_mask, cache, **kwargs):
        """The (B, M) mask of real tokens is all the model needs, filled up to the static cache's size so that its shape
        never changes."""
        if attention_mask is None:
            return None
        size = cache.get_max_length()
        return nn.functional.pad(attention_mask, (0, max(0, size - attention_mask.shape[1])))


__all__ = ["PosGenForCausalLM", "PosGenModel", "PosGenPreTrainedModel"]
