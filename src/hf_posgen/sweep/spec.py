"""The sweep file: arms × seeds of one or more studies.

name: my-sweep
imports: [recency]                # optional: modules of your own that register encodings, tasks, ...
panels:
  study1:                         # a study: what its runs share, and how its arms differ
    base: {task: {...}, model: {...}, train: {...}}
    arms: {rope: {model: {position_encoding: rope}}, learned: {...}}
    grid: {model.hidden_size: [32, 64]}     # optional: every arm with every combination
    seeds: [0, 1]
    learning_rates: [3e-4, 1e-3]            # optional: chosen for each arm on validation,
    selection_seeds: [100]                  # with seeds that are not used afterwards
contrasts: [[rope, learned]]      # optional: the differences that the report tests (default: all pairs)
"""

import itertools
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from ..common.names import pairs_of_arms, unknown
from ..common.typed import typed
from ..common.yaml_text import dump_yaml, read_yaml
from ..run.build import RunConfig, build_run, merge
from ..run.schema import COMPONENTS
from ..run.tree import known

KEYS = ("name", "imports", "panels", "contrasts")
PANEL_KEYS = ("base", "arms", "grid", "seeds", "learning_rates", "selection_seeds")
OF_THE_SWEEP = {"seed": "seeds", "arm": "arms", "panel": "panels"}  # keys of a run that a sweep sets itself


@dataclass(frozen=True)
class SweepPanel:
    """The runs that one study compares. arms: {name: a run's configuration without seed, arm and panel}."""

    name: str
    arms: dict[str, dict]
    seeds: tuple[int, ...]
    learning_rates: tuple[float, ...]
    selection_seeds: tuple[int, ...]


@dataclass(frozen=True)
class SweepSpec:
    """A sweep file, checked. contrasts: the pairs of arms to test; None: all."""

    name: str
    panels: tuple[SweepPanel, ...]
    contrasts: tuple[tuple[str, str], ...] | None


def presets() -> dict[str, Path]:
    """Return {name: file} of the sweeps that come with the package."""
    folder = files("hf_posgen.sweep").joinpath("presets")
    return {Path(p.name).stem: p for p in sorted(folder.iterdir(), key=str) if p.name.endswith(".yaml")}


def read_sweep(source: str) -> dict:
    """Return the tree of a preset, by name, or of a YAML file. Raises `ValueError` for neither."""
    if source in presets():
        return read_yaml(presets()[source])
    if Path(source).suffix in (".yaml", ".yml"):
        tree = read_yaml(source)
        if "panels" not in tree and {"task", "model", "train"} & set(tree):
            raise ValueError(f"{source} is one run, and a sweep has panels of many: posgen train {source} --out DIR")
        return tree
    raise unknown("preset", source, [*presets(), "or a YAML file"])


def parse_sweep(tree: dict) -> SweepSpec:
    """Check a sweep's tree and return it as a `SweepSpec`.

    Raises `ValueError` for an unknown key, no panels, no arms or no seeds; a name that is no text; a seed or a rate that
    is listed twice; and a key that the sweep sets itself. The runs themselves are checked by `sweep_runs`."""
    known("", tree, KEYS)
    given = known("panels.", tree.get("panels") or {}, list(tree.get("panels") or {}))
    if not given:
        raise ValueError("the sweep has no panels")
    panels = tuple(_panel(_text("panel", name), part, tree.get("imports")) for name, part in given.items())
    name = _text("the name of the sweep", tree.get("name", "Sweep"))
    return SweepSpec(name, panels, _contrasts(tree["contrasts"], panels) if "contrasts" in tree else None)


def sweep_runs(tree: dict, rates: dict[tuple[str, str], float] | None = None) -> list[RunConfig]:
    """Return every run of a sweep, with the learning rates chosen for some (panel, arm).

    Raises `ValueError` for a sweep, or any of its runs, that can't be."""
    rates, runs = rates or {}, []
    for panel in parse_sweep(tree).panels:
        for arm, config in panel.arms.items():
            if (panel.name, arm) in rates:
                config = merge(config, {"train": {"learning_rate": rates[panel.name, arm]}})
            runs += [build_run(config | {"seed": seed, "arm": arm, "panel": panel.name}) for seed in panel.seeds]
    return runs


def _panel(name: str, part: dict, imports) -> SweepPanel:
    where = f"panels.{name}."
    known(where, part, PANEL_KEYS)
    if not part.get("arms") and not part.get("grid"):
        raise ValueError(f"panel {name!r} of the sweep needs at least one arm, or a grid")
    seeds = _whole_numbers(f"{where}seeds", part.get("seeds", [0]))
    if not seeds:
        raise ValueError(f"{where}seeds is empty; it must be a list of whole numbers")
    rates = tuple(typed(f"{where}learning_rates", rate, float) for rate in _list(where, part, "learning_rates"))
    selection_seeds = _whole_numbers(f"{where}selection_seeds", part.get("selection_seeds") or [])
    _refuse_repeats(f"{where}learning_rates", rates)
    if bool(rates) != bool(selection_seeds):
        raise ValueError(f"panel {name!r} needs both learning_rates and selection_seeds, or neither")
    if again := sorted(set(selection_seeds) & set(seeds)):
        raise ValueError(f"panel {name!r} selects its learning rates on seeds it uses again: {again}")
    return SweepPanel(name, _arms(where, part, imports), seeds, rates, selection_seeds)


def _arms(where: str, part: dict, imports) -> dict[str, dict]:
    """Return {arm: a run's configuration}: every named arm with every combination of the grid."""
    base, named = _section(where, "base", part.get("base")), part.get("arms") or {"": {}}
    if not isinstance(named, dict):
        raise ValueError(
            f"{where}arms is {named!r}; it must be a mapping of names to what is special about each arm, such as "
            "{rope: {model: {position_encoding: rope}}}"
        )
    grid, arms = _grid(where, part.get("grid")), {}
    for name, changes in named.items():
        text = _text("arm", name) if part.get("arms") else ""
        changes = _section(f"{where}arms.", text, changes)
        config = merge(base, changes)
        if modules := _modules(imports, base.get("imports"), changes.get("imports")):
            config["imports"] = modules
        for values in itertools.product(*grid.values()):
            arm = "-".join(filter(None, [text, *map(_value_name, grid, values)]))
            if arm in arms:
                raise ValueError(
                    f"two arms of {where.removesuffix('.')} are called {arm!r}; give them names that differ"
                )
            arms[arm] = config
            for key, value in zip(grid, values, strict=True):
                arms[arm] = merge(arms[arm], _nested(key, value))
    return arms


def _modules(*given) -> list[str]:
    """Return the modules that a sweep, a panel's base and an arm import, each once."""
    names = []
    for imports in given:
        if not isinstance(imports, str | list | None):
            raise ValueError(f"imports is {imports!r}; it must be a list of module names")
        names += [imports] if isinstance(imports, str) else imports or []
    return [name for i, name in enumerate(names) if name not in names[:i]]


def _grid(where: str, grid) -> dict[str, list]:
    grid = grid or {}
    if not isinstance(grid, dict):
        raise ValueError(f"{where}grid is {grid!r}; it must map dotted keys of a run to lists of values")
    for key, values in grid.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"{where}grid.{key} is {values!r}; it must be a list of values")
        _refuse_own_keys(f"{where}grid.", [_text("a key of the grid", key)])
        _refuse_repeats(f"{where}grid.{key}", [_value_name(key, value) for value in values])
    return grid


def _section(where: str, key: str, given) -> dict:
    """Return a part of a run's tree: a mapping, or nothing."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise ValueError(f"{where}{key} is {given!r}; it must be a mapping of a run's keys")
    _refuse_own_keys(f"{where}{key}.", given)
    return given


def _refuse_own_keys(where: str, keys) -> None:
    for key in keys:
        if key in OF_THE_SWEEP:
            raise ValueError(f"{where}{key}: a sweep sets this itself; say it under {OF_THE_SWEEP[key]!r} of the sweep")


def _nested(key: str, value) -> dict:
    """Return {"a": {"b": value}} for the dotted key "a.b"."""
    for part in reversed(key.split(".")):
        value = {part: value}
    return value


def _value_name(key: str, value) -> str:
    """Name a grid's value: a component by its own name, "alibi-slopes=learned"; another key with its value,
    "hidden_size=64", "learning_rate=0.001"."""
    if key.removeprefix("model.") in COMPONENTS:
        layers = value if isinstance(value, list) else [value]
        return "+".join(map(_component_name, layers))
    return f"{key.split('.')[-1]}={_component_name(value)}"


def _component_name(value) -> str:
    if isinstance(value, dict) and "name" in value:
        return "-".join([str(value["name"]), *(f"{k}={_plain(v)}" for k, v in value.items() if k != "name")])
    return _plain(value)


def _plain(value) -> str:
    """Write a value so that 1e-3, 0.001 and "1e-3" (YAML reads 1e-3 as text) have one name."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return value
    if isinstance(value, float):
        return f"{value:g}"
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def _text(kind: str, value) -> str:
    if isinstance(value, str) and value.strip():
        return value
    raise ValueError(
        f"{kind} {value!r} is no text: YAML reads on, off, yes, no, null and bare numbers as something else; put "
        f'quotes around it, such as "{"on" if isinstance(value, bool) else value}"'
    )


def _list(where: str, part: dict, key: str) -> list:
    given = part.get(key) or []
    if not isinstance(given, list):
        raise ValueError(f"{where}{key} is {given!r}; it must be a list")
    return given


def _whole_numbers(key: str, given) -> tuple[int, ...]:
    if not isinstance(given, list) or not all(type(number) is int and number >= 0 for number in given):
        raise ValueError(f"{key} is {given!r}; it must be a list of whole numbers of at least 0")
    _refuse_repeats(key, given)
    return tuple(given)


def _refuse_repeats(key: str, values) -> None:
    repeated = [value for i, value in enumerate(values) if value in list(values)[:i]]
    if repeated:
        raise ValueError(f"{key} lists {repeated[0]!r} twice; once is enough")


def _contrasts(given, panels: tuple[SweepPanel, ...]) -> tuple[tuple[str, str], ...]:
    """Return the declared pairs of arms. Raises `ValueError` where no panel holds both arms of a pair."""
    pairs = pairs_of_arms(given, dict.fromkeys(arm for panel in panels for arm in panel.arms))
    for pair in pairs:
        if not any(set(pair) <= set(panel.arms) for panel in panels):
            raise ValueError(f"contrast {pair[0]}:{pair[1]}: no panel of the sweep holds both arms")
    return tuple(pairs)


def dump_sweep(tree: dict) -> str:
    """Return a sweep's tree as YAML, keys in their order."""
    return dump_yaml(tree)
