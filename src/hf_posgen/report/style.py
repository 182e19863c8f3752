"""What an encoding looks like: the same colour and marker in every figure and on the page."""

from dataclasses import dataclass

# Okabe and Ito's colours for the encodings met most, Tol's for the rest: people with any colour vision can tell them
# apart. Relatives may share a colour, never the marker too.
STYLES = {
    "none": ("#222222", "D"),
    "learned": ("#D55E00", "s"),
    "sinusoidal": ("#CC79A7", "v"),
    "rope": ("#0072B2", "o"),
    "rope_linear": ("#56B4E9", "<"),
    "rope_ntk": ("#56B4E9", ">"),
    "rope_dynamic_ntk": ("#56B4E9", "d"),
    "rope_yarn": ("#332288", "p"),
    "rope_longrope": ("#332288", "h"),
    "rope_llama3": ("#332288", "s"),
    "xpos": ("#44AA99", "X"),
    "rove": ("#44AA99", "P"),
    "selective_rope": ("#44AA99", "<"),
    "alibi": ("#009E73", "^"),
    "t5": ("#E69F00", "P"),
    "clipped": ("#117733", "s"),
    "kerple": ("#999933", "d"),
    "fire": ("#882255", "X"),
    "sandwich": ("#999933", "h"),
    "shaw": ("#661100", "<"),
    "transformer_xl": ("#661100", ">"),
    "forgetting_gate": ("#AA4499", "p"),
    "cable": ("#AA4499", "d"),
    "grape": ("#AA4499", "^"),
    "cope": ("#882255", "v"),
    "dape": ("#882255", "^"),
}
SPARE = [(colour, marker) for marker in "ohpd<>" for colour in ("#E69F00", "#882255", "#117733", "#661100", "#332288")]
DASHES = ["-", "--", "-.", ":"]
GREY = "#8a8a8a"


@dataclass(frozen=True)
class Style:
    """`variant` counts the arms of one encoding: 0 is drawn solid and filled, the others dashed and hollow."""

    colour: str
    marker: str
    variant: int = 0

    @property
    def dash(self) -> str:
        return DASHES[self.variant % len(DASHES)]


def styles(encodings: dict[str, str]) -> dict[str, Style]:
    """{arm: style} from {arm: encoding}. Unknown encodings take spare styles in the order of their names."""
    unknown = sorted(set(encodings.values()) - set(STYLES))
    own = STYLES | {name: SPARE[i % len(SPARE)] for i, name in enumerate(unknown)}
    seen: dict[str, int] = {}
    out = {}
    for arm, encoding in encodings.items():
        variant = seen.get(encoding, 0)
        seen[encoding] = variant + 1
        out[arm] = Style(*own[encoding], variant)
    return out
