"""Every analysis gives numbers and a figure, or says why not, whatever the model and the task."""

import json

import pytest

from hf_posgen.analysis.context import AnalysisContext, NotApplicable
from hf_posgen.analysis.registry import ANALYSES, find_analysis
from hf_posgen.run.build import build_model, build_run

TWO = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
OFFSET = {"name": "fixed_offset", "test_lengths": [17, 48]}
RUNS = {
    "two layers, every position": (TWO | {"position_encoding": "rope"}, OFFSET | {"query": "every"}),
    "grouped keys, anchor": (TWO | {"num_key_value_heads": 1, "position_encoding": "t5"}, OFFSET | {"bos": True}),
    "an encoding per layer": (TWO | {"position_encoding": ["rope", "none"]}, OFFSET),
    "linear attention": (TWO | {"mixer": "linear", "position_encoding": "rope"}, OFFSET),
    "hybrid": (TWO | {"mixer": [{"name": "recurrence"}, "softmax"], "position_encoding": "none"}, OFFSET),
    "recurrence": (TWO | {"mixer": "recurrence", "position_encoding": "none"}, OFFSET),
    "context": (TWO | {"position_encoding": "cope"}, OFFSET),
    "a stream": (TWO | {"position_encoding": "alibi"}, {"name": "delay_copy", "test_windows": [128]}),
}


@pytest.fixture(scope="module", params=list(RUNS))
def context(request):
    model, task = RUNS[request.param]
    run = build_run({"model": model, "task": task, "train": {"cpu": True}})
    return AnalysisContext(build_model(run).eval(), build_model(run).eval(), run, run.built_task, count=8)


@pytest.mark.parametrize("name", list(ANALYSES))
def test_numbers_or_a_reason(context, name):
    analysis = find_analysis(name)
    try:
        result = analysis.measure(context)
    except NotApplicable as reason:
        assert len(str(reason).split()) > 4
        return
    result = json.loads(json.dumps(result, allow_nan=False))
    assert analysis.figure(result).axes
