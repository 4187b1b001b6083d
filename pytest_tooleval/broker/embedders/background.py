"""How alike texts are to a model when they have nothing to do with each other, and from where on likeness counts.

Models differ in this: the cosine of unrelated texts is about 0 for all-MiniLM-L6-v2 and about 0.76 for E5. So the
floor is no fixed cosine. It is measured on the spot, with requests that have nothing to do with the tools:

    floor = mean + FLOOR_SPREADS * standard deviation    of their cosines to the catalog's tools

FLOOR_SPREADS was set on 1,500 queries of MetaTool (plugins of a chat assistant: travel, shopping, films), against
the tools of 14 MCP servers for developers, which can serve next to none of them, and against MetaTool's own tools.
Share of queries whose nearest tool passes (for the developers' servers: median, and the worst of the 14):

    floor at, deviations above the mean          4             5              6              7
    all-MiniLM-L6-v2, developers' servers    10.6, 50 %     3.4, 24 %      0.9, 7 %     0.2, 2 %
    all-MiniLM-L6-v2, own tools                 91 %          73 %           51 %          32 %
    WordLlama (static), developers' servers  10.8, 53 %     3.8, 28 %      1.4, 13 %    0.4, 5 %
    WordLlama (static), own tools               85 %          64 %           43 %          27 %
    multilingual-e5-small (4 bit, of 300 queries), developers' servers
                                              0.8, 7 %      0.0, 1 %         0 %           0 %
    multilingual-e5-small, own tools            26 %           5 %            1 %           0 %

At 6 about one request in 100 that no tool can serve is let through. With a model that tells little apart the floor
rather refuses than lets pass. It decides whether a tool is offered as a match; it touches no ranking.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_tooleval.broker.embedders.vectors import Vectors

FLOOR_SPREADS = 6.0
PROBES = (
    "walk the dog around the block",
    "bake a chocolate cake for the birthday party",
    "water the roses in the garden",
    "tune the piano in the living room",
    "wash the car before the weekend",
    "sew a button back on my coat",
    "how tall is a giraffe?",
    "tell me a joke about penguins",
    "what should I name my kitten?",
    "teach me to ride a bicycle",
    "paint the fence green",
    "knit a scarf for grandmother",
    "is it true that cats always land on their feet?",
    "cut my hair shorter at the sides",
    "feed the goldfish while we are away",
    "who won the chess championship in 1972?",
    "iron the shirts for the wedding",
    "why is the sky blue?",
    "peel the potatoes and boil them",
    "recommend a mystery novel for the beach",
    "help me fall asleep faster",
    "fix the dripping tap in the bathroom",
    "what does my dream about flying mean?",
    "sharpen the kitchen knives",
    "teach the parrot to say hello",
    "carve a pumpkin for Halloween",
    "how do volcanoes form?",
    "tie a bow tie",
    "pack my suitcase for the mountains",
    "stretch my back after sitting all day",
)


@dataclass(frozen=True, slots=True)
class Background:
    """Cosines between texts that have nothing to do with each other.

    Attributes:
        mean: their mean.
        spread: their standard deviation.

    """

    mean: float = 0.0
    spread: float = 0.0

    @property
    def relevance_floor(self) -> float:
        """Least cosine that speaks for a tool."""
        return self.mean + FLOOR_SPREADS * self.spread


def measured_background(probes: Vectors, tools: Vectors) -> Background:
    """Measure how alike requests are to tools that cannot serve them; all zeros when there are no tools.

    Args:
        probes: vectors of `PROBES`, shape (30, dimensions).
        tools: vectors of the tools, shape (n, dimensions).

    """
    cosines = probes @ tools.T
    if not cosines.size:
        return Background()
    return Background(round(float(cosines.mean()), 4), round(float(cosines.std()), 4))
