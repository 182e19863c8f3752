"""Training a run: `train(run, out)` leaves the run folder, and called again goes on where it stopped.

Data, schedule and learning rate are functions of (seed, step, process) alone, so a state holds the weights, the
optimizer, the random generators and a few counters, and a resumed run is bit-equal to a straight one.
"""

import contextlib
import json
import math
import shutil
import signal
import time
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import torch
import yaml
from accelerate import Accelerator
from accelerate.utils import set_seed
from tqdm.auto import tqdm

from .evaluation import evaluate_cells, save_evaluation, validation_summary
from .files import write_rows, write_text
from .model.configuration_posgen import PosGenConfig
from .model.modeling_posgen import PosGenForCausalLM
from .run_config import RunConfig, to_tree, vocabulary
from .tasks import build_task, examples, task_tokenizer, train_cell
from .training_state import newest_whole, prune, publish, state_name


class Stopped(RuntimeError):
    """Training ended before its last step for a reason that the message names."""


@dataclass
class Progress:
    """What a state holds beside weights, optimizer and generators."""

    step: int = 0
    tokens_seen: int = 0
    best: float = -1.0
    best_step: int = 0
    validations_since_best: int = 0
    finished: bool = False
    log: list = field(default_factory=list)


def build_model(run: RunConfig) -> PosGenForCausalLM:
    """The model at its start. Each parameter's draw depends on the seed and its name alone, so that arms with the same
    seed share every weight whose shape they share."""
    task = build_task(run.task)
    torch.manual_seed(run.seed)
    model = PosGenForCausalLM(PosGenConfig(**run.model, **vocabulary(task)))
    for name, module in model.named_modules():
        torch.manual_seed(zlib.crc32(f"{run.seed} {name}".encode()))
        model._init_weights(module)
    return model


def learning_rate(train, step: int) -> float:
    """Of step 0, 1, ...: a function of the step alone, whatever the number of processes."""
    if step < train.warmup_steps:
        return train.learning_rate * (step + 1) / train.warmup_steps
    if train.schedule == "constant":
        return train.learning_rate
    share = (step - train.warmup_steps) / max(1, train.steps - train.warmup_steps)
    return train.learning_rate * 0.5 * (1 + math.cos(math.pi * share))


def claim_folder(run: RunConfig, out: Path) -> None:
    """Make the run folder, or check that it holds this very run. Raises `ValueError` otherwise."""
    out.mkdir(parents=True, exist_ok=True)
    file = out / "run.yaml"
    if file.is_file():
        if yaml.safe_load(file.read_text()) != to_tree(run):
            raise ValueError(f"{out} holds a run with another configuration (see its run.yaml): choose another folder")
    elif any(out.iterdir()):
        raise ValueError(f"{out} is not empty and holds no run: choose another folder")
    else:
        write_text(file, yaml.safe_dump(to_tree(run), sort_keys=False))


def train(run: RunConfig, out: str | Path, *, evaluate: bool = True, on_step=None, quiet: bool | None = None) -> Path:
    """Train, validate, save and (unless told not to) evaluate; returns the run folder.

    on_step(step): called after every optimizer step. Raises `Stopped` where the loss is no number or SIGTERM came (the
    state is saved first), `ValueError` for a folder that holds another run.
    """
    out = Path(out)
    accelerator = Accelerator(
        cpu=run.train.cpu,
        mixed_precision=run.train.precision,
        log_with=list(run.train.trackers) or None,
        project_dir=out,
    )
    if accelerator.is_main_process:
        claim_folder(run, out)
    accelerator.wait_for_everyone()
    if not (out / "model.safetensors").is_file():
        _Trainer(run, out, accelerator, on_step, quiet).run_to_the_end()
    if evaluate and accelerator.is_main_process and not (out / "results.jsonl").is_file():
        save_evaluation(out)
    accelerator.wait_for_everyone()
    return out


class _Trainer:
    def __init__(self, run: RunConfig, out: Path, accelerator: Accelerator, on_step, quiet):
        self.config, self.train, self.out, self.accelerator = run, run.train, out, accelerator
        self.on_step, self.quiet = on_step, quiet
        self.task = build_task(run.task)
        model = build_model(run)
        optimizer = torch.optim.AdamW(
            model.parameters(), lr=0.0, betas=(0.9, 0.999), weight_decay=self.train.weight_decay
        )
        self.model, self.optimizer = accelerator.prepare(model, optimizer)
        self.forward = torch.compile(self.model) if self.train.compile else self.model
        self.progress = Progress()
        self.terminated = False
        set_seed(run.seed + 1000003 * accelerator.process_index)  # dropout and sampled positions differ by process

    @property
    def plain(self) -> PosGenForCausalLM:
        return self.accelerator.unwrap_model(self.model)

    def run_to_the_end(self) -> None:
        train, progress = self.train, self.progress
        self._resume()
        if train.trackers:
            self.accelerator.init_trackers("hf_posgen", config=to_tree(self.config))
        previous = self._catch_sigterm()
        bar = tqdm(
            total=train.steps,
            initial=progress.step,
            desc=self.config.arm,
            unit="step",
            disable=self.quiet if self.quiet is not None else (None if self.accelerator.is_main_process else True),
        )
        started, tokens_before = time.monotonic(), progress.tokens_seen
        try:
            while progress.step < train.steps and not progress.finished:
                loss = self._step()
                bar.update()
                if progress.step % train.log_every == 0 or progress.step == train.steps:
                    speed = (progress.tokens_seen - tokens_before) / (time.monotonic() - started)
                    self._log(loss, speed, bar)
                self._after_step()
            self._finish()
        finally:
            bar.close()
            if previous is not None:
                signal.signal(signal.SIGTERM, previous)
            if train.trackers:
                self.accelerator.end_training()

    def _batches(self, step: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """This process's micro-batches of one step."""
        train, world, rank = self.train, self.accelerator.num_processes, self.accelerator.process_index
        cell = train_cell(self.task, self.config.seed, step)
        out = []
        for micro in range(train.gradient_accumulation):
            start = ((step * train.gradient_accumulation + micro) * world + rank) * train.batch_size
            pair = examples(self.task, self.config.seed, "train", cell, start, start + train.batch_size)
            out.append(tuple(torch.from_numpy(part).to(self.accelerator.device) for part in pair))
        return out

    def _step(self) -> float:
        """One optimizer step: the loss is the mean over all scored tokens of all micro-batches and processes."""
        self.model.train()
        batches = self._batches(self.progress.step)
        counts = torch.tensor(
            [sum(int((labels[:, 1:] != -100).sum()) for _, labels in batches), sum(t.numel() for t, _ in batches)],
            device=self.accelerator.device,
        )
        scored, tokens = self.accelerator.reduce(counts, "sum").tolist()
        self.progress.step += 1
        self.progress.tokens_seen += tokens
        if scored == 0:
            return 0.0
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.train, self.progress.step - 1)
        total = torch.zeros((), device=self.accelerator.device)
        for i, (ids, labels) in enumerate(batches):
            last = i == len(batches) - 1
            with self.accelerator.no_sync(self.model) if not last else contextlib.nullcontext():
                loss = self.forward(input_ids=ids, labels=labels, use_cache=False, num_items_in_batch=scored).loss
                self.accelerator.backward(loss * self.accelerator.num_processes)  # DDP averages over processes
            total += loss.detach()
        total = self.accelerator.reduce(total, "sum")
        if not torch.isfinite(total):
            self._refuse_to_go_on(float(total))
        self.accelerator.clip_grad_norm_(self.model.parameters(), self.train.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return total

    def _refuse_to_go_on(self, loss: float) -> None:
        good = newest_whole(self.out / "state")
        where = f"the last good state is {good}" if good else "no state was saved before it"
        raise Stopped(f"the loss is {loss} at step {self.progress.step}; {where}")

    def _log(self, loss, speed: float, bar) -> None:
        progress = self.progress
        line = {
            "step": progress.step,
            "loss": float(loss),
            "lr": learning_rate(self.train, progress.step - 1),
            "tokens_seen": progress.tokens_seen,
            "tokens_per_second": round(speed),
        }
        if self.accelerator.device.type == "cuda":
            line["peak_memory_bytes"] = torch.cuda.max_memory_allocated()
        progress.log.append(line)
        bar.set_postfix_str(f"loss {line['loss']:.3f}, {speed:,.0f} tokens/s")
        if self.train.trackers:
            self.accelerator.log({key: line[key] for key in ("loss", "lr")}, step=progress.step)

    def _after_step(self) -> None:
        step, train = self.progress.step, self.train
        if train.validate_every and step % train.validate_every == 0 and step < train.steps:
            self._validate()
        if (train.save_every and step % train.save_every == 0 and step < train.steps) or self.terminated:
            self._save_state()
        if self.on_step:
            self.on_step(step)
        if self.terminated:
            raise Stopped(f"stopped by SIGTERM after step {step}; the state is saved: the same command goes on")

    def _validate(self) -> None:
        """Score the trained cells; remember the best, and decide on stopping early."""
        progress, train = self.progress, self.train
        rows = evaluate_cells(
            self.plain,
            self.task,
            "validation",
            self.config.seed,
            train.validation_count,
            self.config.evaluation.batch_tokens,
        )
        summary = validation_summary(rows)
        progress.log.append({"step": progress.step, "split": "validation"} | summary)
        if summary["token_accuracy"] > progress.best:
            progress.best, progress.best_step, progress.validations_since_best = (
                summary["token_accuracy"],
                progress.step,
                0,
            )
            if train.select == "best" and self.accelerator.is_main_process:
                self._save_model(self.out / "state" / "best")
        else:
            progress.validations_since_best += 1
        enough = train.stop_at is not None and summary["worst_token_accuracy"] >= train.stop_at
        progress.finished = enough or (0 < train.patience <= progress.validations_since_best)

    def _save_state(self) -> None:
        """At an optimizer step, never inside an accumulation. All processes save their generators."""
        states = self.out / "state"
        final = states / state_name(self.progress.step)
        temporary = final.with_suffix(".partial")
        if self.accelerator.is_main_process:
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(parents=True)
        self.accelerator.wait_for_everyone()
        self.accelerator.save_state(str(temporary / "accelerate"))
        self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            self._save_model(temporary / "model")
            write_text(temporary / "progress.json", json.dumps(vars(self.progress)))
            publish(temporary, final)
            prune(states, self.train.keep)
            write_rows(self.out / "train.jsonl", self.progress.log)
        self.accelerator.wait_for_everyone()

    def _resume(self) -> None:
        found = newest_whole(self.out / "state")
        if found is None:
            return
        self.accelerator.load_state(str(found / "accelerate"))
        for key, value in json.loads((found / "progress.json").read_text()).items():
            setattr(self.progress, key, value)

    def _save_model(self, folder: Path) -> None:
        """A folder that `from_pretrained` opens anywhere: weights, config, code, tokenizer."""
        self.plain.save_pretrained(folder)
        task_tokenizer(self.task).save_pretrained(folder)

    def _finish(self) -> None:
        """The last validation and state, then the model at the top of the folder (the weights file last)."""
        self._validate()
        self.progress.finished = True
        self._save_state()
        if self.accelerator.is_main_process:
            best = self.out / "state" / "best"
            source = (
                best if self.train.select == "best" else self.out / "state" / state_name(self.progress.step) / "model"
            )
            for file in sorted(source.iterdir(), key=lambda file: file.name == "model.safetensors"):
                temporary = self.out / f".{file.name}.partial"
                shutil.copy2(file, temporary)
                temporary.rename(self.out / file.name)
        self.accelerator.wait_for_everyone()

    def _catch_sigterm(self):
        """Finish the step, save, stop. Signals reach the main thread only."""
        try:
            return signal.signal(signal.SIGTERM, lambda *_: setattr(self, "terminated", True))
        except ValueError:
            return None
