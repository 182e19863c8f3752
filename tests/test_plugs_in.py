"""The model where Hugging Face's own tools expect one: Trainer, PEFT, pipeline."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments, pipeline

from hf_posgen import PosGenConfig, PosGenForCausalLM
from hf_posgen.tasks import Cell, build_task, examples

TASK = build_task("fixed_offset")


def tiny(encoding="rope") -> PosGenForCausalLM:
    torch.manual_seed(0)
    settings = {"vocab_size": TASK.vocab_size, "hidden_size": 32, "num_hidden_layers": 1, "position_encoding": encoding}
    return PosGenForCausalLM(PosGenConfig(**settings, pad_token_id=TASK.pad_token_id, bos_token_id=TASK.bos_token_id))


def dataset(count: int) -> list[dict]:
    tokens, labels = examples(TASK, 0, "train", Cell(12, 3), 0, count)
    return [{"input_ids": ids, "labels": answers} for ids, answers in zip(tokens, labels, strict=True)]


def train(model, rows, folder, **settings) -> Trainer:
    arguments = TrainingArguments(
        output_dir=str(folder), use_cpu=True, report_to=[], save_strategy="no", disable_tqdm=True, seed=0, **settings
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=rows)
    trainer.result = trainer.train()
    return trainer


def test_trainer_trains_it(tmp_path):
    model = tiny()
    rows = dataset(64)
    settings = {"num_train_epochs": 30, "per_device_train_batch_size": 16, "learning_rate": 1e-2, "logging_steps": 20}
    log = train(model, rows, tmp_path, **settings).state.log_history
    losses = [entry["loss"] for entry in log if "loss" in entry]
    assert losses[-1] < 0.5 * losses[0]


def test_trainer_counts_answers_over_accumulated_batches(tmp_path):
    """`num_items_in_batch`: two batches with 1 and 9 answers accumulated are one batch with 10, not a mean of means."""
    rows = dataset(2)
    rows[1] = rows[1] | {"labels": np.where(np.arange(len(rows[1]["labels"])) < 9, 2, -100)}
    settings = {"max_steps": 1, "optim": "sgd", "learning_rate": 1.0, "lr_scheduler_type": "constant"}
    together, apart = tiny(), tiny()
    assert train(together, rows, tmp_path, per_device_train_batch_size=2, **settings).model_accepts_loss_kwargs
    train(apart, rows, tmp_path, per_device_train_batch_size=1, gradient_accumulation_steps=2, **settings)
    moved = 0.0
    for before, one, other in zip(tiny().parameters(), together.parameters(), apart.parameters(), strict=True):
        torch.testing.assert_close(other, one, rtol=0, atol=1e-6)
        moved = max(moved, (one - before).abs().max().item())
    assert moved > 1e-2


@pytest.mark.parametrize("encoding", ["rope", "fire"])
def test_lora_wraps_it(encoding, tmp_path):
    from peft import LoraConfig, PeftModel, get_peft_model

    wrapped = get_peft_model(tiny(encoding), LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj", "v_proj"]))
    rows = dataset(16)
    train(wrapped, rows, tmp_path / "run", max_steps=3, per_device_train_batch_size=8, learning_rate=1e-1)
    base = dict(tiny(encoding).named_parameters())
    for name, parameter in wrapped.get_base_model().named_parameters():
        if "lora_" not in name:
            assert torch.equal(parameter, base[name.replace(".base_layer", "")]), f"{name} is frozen"
    ids = torch.tensor(np.stack([row["input_ids"] for row in rows]))
    wrapped.eval().save_pretrained(tmp_path / "adapter")
    expected = wrapped(ids).logits
    assert not torch.allclose(expected, tiny(encoding).eval()(ids).logits, atol=1e-3)
    again = PeftModel.from_pretrained(tiny(encoding), tmp_path / "adapter").eval()
    torch.testing.assert_close(again(ids).logits, expected)
    torch.testing.assert_close(again.merge_and_unload()(ids).logits, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("encoding", ["rope", "alibi", "learned"])
def test_pipeline_generates(encoding, tmp_path):
    """From a saved folder, with the task's tokenizer, in a batch of prompts of unequal lengths."""
    tiny(encoding).save_pretrained(tmp_path)
    TASK.build_tokenizer().save_pretrained(tmp_path)
    settings = {"max_new_tokens": 4, "do_sample": False, "return_full_text": False}
    generate = pipeline("text-generation", model=str(tmp_path), device="cpu")
    prompts = ["3 7 1 2", "5 0 5 0 5 0 1"]
    alone = [generate(prompt, **settings)[0]["generated_text"].split() for prompt in prompts]
    together = [out[0]["generated_text"].split() for out in generate(prompts, batch_size=2, **settings)]
    assert together == alone
    assert all(len(text) == 4 and set(text) <= set(TASK.vocabulary) for text in alone)
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    greedy = model.generate(torch.tensor([[3, 7, 1, 2]]), max_new_tokens=4, do_sample=False)[0, 4:]
    assert alone[0] == [TASK.vocabulary[i] for i in greedy]
