"""Training a run: `train(run, out)` leaves the run folder, and called again goes on where it stopped.

Data, schedule and learning rate are functions of (seed, step, process) alone, so a state holds the weights, the
optimizer, the random generators and a few counters, and a resumed run is bit-equal to a straight one.
"""

import contextlib
import math
import signal
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType, set_seed

from ..evaluation.runs import save_evaluation
from ..evaluation.validation import NotANumber, validate
from ..metrics.functional import IGNORE
from ..model.modeling_posgen import PosGenForCausalLM
from ..run.build import RunConfig, build_model, run_hash
from ..run.folder import RunFolder
from ..run.imports import import_modules
from ..tasks import examples, train_cell
from .checkpoints import Checkpoints, Progress
from .environment import record
from .log import TrainingLog, tracker_names
from .setup import Stopped, Terminated, learning_rate, open_accelerator

EXPLODED = 20.0  # times the loss at the start, or of a uniform guess where that is larger


def train(
    run: RunConfig,
    out: str | Path,
    *,
    evaluate: bool = True,
    on_step=None,
    quiet: bool | None = None,
    uploads=None,
) -> Path:
    """Train, validate, save and (unless told not to) evaluate; returns the run folder.

    on_step(step): called after every optimizer step. uploads: makes, in the main process, the context that publishes
    every checkpoint while training goes on, and the finished run at the end:
    `partial(hf_posgen.hub.BackgroundPush, "owner/name")`. Raises `Stopped` where the loss is no number or explodes, a
    state can't be saved, or SIGTERM came (the state is saved first); `ValueError` for a folder that holds another run.
    """
    folder = RunFolder(out)
    import_modules(run.imports)  # a worker process has not read the run
    accelerator = open_accelerator(run, folder, tracker_names(run, quiet))
    main = accelerator.is_main_process
    if main:
        folder.claim(run)
    accelerator.wait_for_everyone()
    publishing = uploads() if uploads and main else contextlib.nullcontext()
    with folder.locked() if main else contextlib.nullcontext(), publishing as uploads:
        if not folder.is_finished:
            TrainingRun(run, folder, accelerator, on_step, quiet, uploads).run_to_the_end()
        if evaluate and not folder.results.is_file():
            save_evaluation(folder.path, processes=accelerator)
        accelerator.wait_for_everyone()
        if uploads and evaluate:
            uploads.run(folder.path)
    return folder.path


def logits_to_keep(labels_NT: torch.Tensor) -> int:
    """Return how many of the last places of a batch hold every logit that is scored; at least 1."""
    scored = (labels_NT[:, 1:] != IGNORE).any(0).nonzero()
    return labels_NT.shape[1] - int(scored[0]) if len(scored) else 1


class TrainingRun:
    """One run in one process; the others of a launch do the same at the same time."""

    def __init__(
        self, run: RunConfig, folder: RunFolder, accelerator: Accelerator, on_step=None, quiet=None, uploads=None
    ):
        self.run, self.train, self.folder, self.accelerator = run, run.train, folder, accelerator
        self.on_step, self.quiet = on_step, quiet
        self.task = run.built_task
        model = build_model(run)
        fused = accelerator.device.type in ("cpu", "cuda")
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, weight_decay=self.train.weight_decay, fused=fused)
        self.model, prepared = accelerator.prepare(model, optimizer)
        # Accelerate's wrapper looks for installed packages in each step, and does nothing else without a loss scaler.
        self.optimizer = prepared.optimizer
        self.parameters = list(self.model.parameters())
        self.forward = torch.compile(self.model) if self.train.compile else self.model
        self.progress = Progress(run_hash(run), accelerator.num_processes)
        self.checkpoints = Checkpoints(run, folder, accelerator, self.progress, uploads)
        self.signalled = self.terminated = False
        set_seed(run.seed + 1000003 * accelerator.process_index)  # dropout and sampled positions differ by process

    @property
    def unwrapped(self) -> PosGenForCausalLM:
        return self.accelerator.unwrap_model(self.model)

    def run_to_the_end(self) -> None:
        """Train from the newest good state, or from the start, to the last step; leave the weights in the run folder."""
        self.checkpoints.resume()
        if self.accelerator.is_main_process:
            record(self.folder, self.accelerator, self.progress.step)
        previous = self._catch_sigterm()
        self.log = TrainingLog(self.run, self.folder, self.progress, self.accelerator, self.quiet)
        try:
            while not self.progress.finished:
                loss = self.step()
                self.log.step(loss, learning_rate(self.train, self.progress.step - 1))
                self._after_step()
            self.checkpoints.commit_model()
        finally:
            self.log.close()
            if previous is not None:
                signal.signal(signal.SIGTERM, previous)

    def batches(self, step: int) -> list[tuple[torch.Tensor, ...]]:
        """Return this process's micro-batches of one step, on the CPU: tokens, labels (N, T) and what else it reads."""
        train, world, rank = self.train, self.accelerator.num_processes, self.accelerator.process_index
        cell = train_cell(self.task, self.run.seed, step)
        batches = []
        for micro in range(train.gradient_accumulation):
            start = ((step * train.gradient_accumulation + micro) * world + rank) * train.batch_size
            arrays = examples(self.task, self.run.seed, "train", cell, start, start + train.batch_size)
            batches.append(tuple(torch.from_numpy(array) for array in arrays))
        return batches

    def step(self) -> torch.Tensor:
        """Take one optimizer step; return the loss, the mean over all scored tokens of all micro-batches and processes."""
        if not self.model.training:
            self.model.train()
        device, progress = self.accelerator.device, self.progress
        batches = self.batches(progress.step)
        counts = [
            sum(int((labels[:, 1:] != IGNORE).sum()) for _, labels, *_ in batches),
            sum(tokens.numel() for tokens, *_ in batches),
            int(self.signalled),  # one process may hear a signal a step before another: all stop at the same step
        ]
        scored, tokens, signalled = self._sum_over_processes(torch.tensor(counts, device=device)).tolist()
        self.terminated = signalled > 0
        progress.step += 1
        progress.tokens_seen += tokens
        loss = torch.zeros((), device=device)
        if scored == 0:
            return loss
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.train, progress.step - 1)
        for i, batch in enumerate(batches):
            last = i == len(batches) - 1
            inputs = {name: tensor.to(device) for name, tensor in zip(self.task.columns, batch, strict=True)}
            keep = logits_to_keep(batch[1])
            with contextlib.nullcontext() if last else self.accelerator.no_sync(self.model):
                share = self.forward(**inputs, use_cache=False, num_items_in_batch=scored, logits_to_keep=keep).loss
                self.accelerator.backward(share * self.accelerator.num_processes)  # DDP averages over processes
            loss += share.detach()
        loss = self._sum_over_processes(loss)
        sharded = self.accelerator.distributed_type == DistributedType.FSDP
        clip = self.accelerator.clip_grad_norm_ if sharded else torch.nn.utils.clip_grad_norm_
        norm = clip(self.parameters, self.train.clip or math.inf)
        norm = norm.full_tensor() if hasattr(norm, "full_tensor") else norm  # sharded weights have a sharded norm
        self._refuse_to_explode(*torch.stack([loss, norm]).tolist())
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss

    def _sum_over_processes(self, values: torch.Tensor) -> torch.Tensor:
        return self.accelerator.reduce(values, "sum") if self.accelerator.num_processes > 1 else values

    def _refuse_to_explode(self, loss: float, norm: float) -> None:
        """Before the optimizer sees the gradient, so that no state is saved with such weights."""
        progress = self.progress
        if progress.first_loss is None:
            progress.first_loss = max(loss, math.log(self.task.vocab_size))
        if math.isfinite(loss) and math.isfinite(norm) and loss <= EXPLODED * progress.first_loss:
            return
        gradient_alone = math.isfinite(loss) and not math.isfinite(norm)
        reason = "the gradient is no number" if gradient_alone else f"the loss is {loss:.4g}"
        raise Stopped(f"{reason} at step {progress.step}; {self.checkpoints.last_good()}")

    def _after_step(self) -> None:
        step, train, progress = self.progress.step, self.train, self.progress
        if step == train.steps or (train.validate_every and step % train.validate_every == 0):
            self._validate()
        progress.finished |= step == train.steps
        if progress.finished or self.terminated or (train.save_every and step % train.save_every == 0):
            self.checkpoints.save_state(self.model)
        if self.on_step:
            self.on_step(step)
        if self.terminated and not progress.finished:
            raise Terminated(f"stopped by SIGTERM after step {step}; the state is saved: the same command goes on")

    def _validate(self) -> None:
        """Score the trained cells; remember the best, and decide on stopping early."""
        progress, train = self.progress, self.train
        try:
            summary = validate(self.unwrapped, self.task, self.run, self.accelerator)
        except NotANumber as error:
            raise Stopped(f"{error}, after step {progress.step}; {self.checkpoints.last_good()}") from None
        self.log.validation(summary)
        progress.validations_since_best += 1
        score = math.exp(-summary["nll"]) if self.task.metric == "perplexity" else summary["token_accuracy"]
        if score > progress.best:
            progress.best, progress.validations_since_best = score, 0
            if train.select == "best":
                self.checkpoints.save_best(self.model)
        enough = train.stop_at is not None and summary["worst_token_accuracy"] >= train.stop_at
        progress.finished = enough or (0 < train.patience <= progress.validations_since_best)

    def _catch_sigterm(self):
        """Finish the step, save, stop. Signals reach the main thread only."""
        try:
            return signal.signal(signal.SIGTERM, lambda *_: setattr(self, "signalled", True))
        except ValueError:
            return None
