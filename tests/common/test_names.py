"""What is told of a name that isn't there."""

from hf_posgen.common.names import unknown


def test_what_was_given_the_nearest_and_what_is_allowed():
    error = unknown("task", "indction", ["induction", "text"])
    assert str(error) == "unknown task 'indction' (did you mean 'induction'?); allowed: induction, text"
    assert str(unknown("task", "xyz", {"text": 1})) == "unknown task 'xyz'; allowed: text"
    told = str(unknown("key", "stpes", ["steps", "seed"], "train."))
    assert told == "unknown key 'train.stpes' (did you mean 'train.steps'?); allowed: steps, seed"
