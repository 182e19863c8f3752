"""A parser of study 2's stream written by hand from its description; it shares nothing with the generator."""

IGNORE = -100


class Wrong(Exception):
    """The window does not read as the grammar says."""


def read_window(tokens, labels, rule):
    """The pairs of one window, [(kind, distance, source places or None, paste places)], after checking everything that
    the window shows: matched marks, only R blocks between them, block lengths, pasted tokens, and the labels.

    The window begins anywhere, so its first mark opens or closes a pair: one of both readings must hold.
    """
    problems = []
    for opens in (True, False):
        try:
            return _read(tokens, labels, rule, opens)
        except Wrong as problem:
            problems.append(str(problem))
    raise AssertionError(f"neither reading holds: {problems}")


def _demand(condition, text):
    if not condition:
        raise Wrong(text)


def _read(tokens, labels, rule, first_opens):
    symbols, kinds = rule["symbols"], {rule["symbols"] + 1: "C", rule["symbols"] + 2: "S"}
    marks = [t for t, token in enumerate(tokens) if token in kinds]
    scored, pairs, opened = {}, [], None
    if not first_opens and marks:
        end = _paste_end(tokens, marks[0] + 1, symbols, rule["copied"])
        first = marks[0] + 1  # what is pasted there can be checked for its labels only
        for place in range(first, end):
            if rule["unreachable"] == "scored":
                scored[place] = (first, None)
        marks, begin = marks[1:], end
    else:
        begin = None  # the window begins in a gap or a paste
    for mark in marks:
        kind = kinds[tokens[mark]]
        if opened is None:
            if begin is not None:
                _blocks(tokens[begin:mark], rule, 1, rule["gap_blocks"], cut=False)
            opened = mark
            continue
        _demand(tokens[opened] == tokens[mark], "marks of a pair differ")
        between = mark - opened - 1
        _blocks(tokens[opened + 1 : mark], rule, 0, between, cut=rule["filler"] == "cut")
        distance = between if rule["distance_counts"] == "between" else between + 1
        _demand(distance in rule["distances"][kind], f"distance {distance}")
        data = [t for t in range(opened) if tokens[t] < symbols][-rule["copied"] :]
        known = len(data) == rule["copied"]
        source = [t for t in data if kind == "C" or tokens[t] % 2 == 0]
        end = mark + 1 + len(source) if known else _paste_end(tokens, mark + 1, symbols, rule["copied"])
        paste = list(range(mark + 1, min(end, len(tokens))))
        if known:
            _demand([tokens[t] for t in paste] == [tokens[t] for t in source[: len(paste)]], "the paste is no copy")
            _demand(end >= len(tokens) or tokens[end] == symbols, "no R after the paste")
        elif kind == "C" and len(paste) == rule["copied"]:
            tail = [tokens[t] for t in data]
            _demand([tokens[t] for t in paste][rule["copied"] - len(tail) :] == tail, "the paste is no copy")
        for place in paste:
            if known or rule["unreachable"] == "scored":
                scored[place] = (mark + 1, kind)
        pairs.append((kind, distance, source if known else None, paste))
        opened, begin = None, end
    for place, label in enumerate(labels):
        first, _ = scored.get(place, (None, None))
        due = first is not None and place >= rule["skip"]
        if rule["cut_pastes"] == "masked":
            due = due and first >= rule["skip"]
        uncertain = begin is None and not pairs or (first_opens and place < (marks[0] if marks else len(tokens)))
        if uncertain and label != IGNORE:  # a paste whose pair stands before the window
            _demand(rule["unreachable"] == "scored", "a target without a source is scored")
            _demand(label == tokens[place], "the label is not the token")
        else:
            _demand(label == (tokens[place] if due else IGNORE), f"label {label} at {place}")
    return pairs


def _paste_end(tokens, place, symbols, copied):
    """The end of a paste of unknown length: at the next control token, at most `copied` tokens on."""
    end = place
    while end < len(tokens) and tokens[end] < symbols and end - place < copied:
        end += 1
    _demand(end > place or end == len(tokens), "nothing is pasted")
    return end


def _blocks(tokens, rule, least, most, cut):
    """R, data, data, R, data ...: each block with at most `block_trials` data tokens."""
    if len(tokens) == 0:
        _demand(least == 0, "no block")
        return
    _demand(tokens[0] == rule["symbols"], "a block without its R")
    lengths = []
    for token in tokens:
        if token == rule["symbols"]:
            lengths.append(0)
        else:
            _demand(token < rule["symbols"], "a mark among R blocks")
            lengths[-1] += 1
    _demand(least <= len(lengths) <= most, f"{len(lengths)} blocks")
    _demand(max(lengths) <= rule["block_trials"], "a block that is too long")
