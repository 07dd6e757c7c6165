"""How similar an encoder finds texts that have nothing in common: the zero point of its cosines.

Unrelated texts have a cosine of about 0.05 with MiniLM, and of 0.75 with other encoders.
"""

import numpy as np

from facets.model.passage_encoding import PassageEncoder

# One sentence each from different parts of life.
_STRANGERS = (
    "The library opens at nine on weekdays.",
    "Dogs must be kept on a lead in the park.",
    "Whisk the eggs with sugar until they are pale.",
    "The bridge was closed after the flood of 1953.",
    "Her second album sold two million copies.",
    "Restart the router and wait for the green light.",
    "Volcanic ash can travel thousands of kilometres.",
    "The tenant pays for water and heating.",
    "Antibiotics do not help against viruses.",
    "He scored twice in the final minutes of the match.",
    "Parliament adopted the budget by a narrow majority.",
    "The function returns an empty list when nothing matches.",
    "Bees tell each other where to find flowers by dancing.",
    "Interest rates rose by half a percentage point.",
    "The painting hangs in a small chapel near Siena.",
    "Tighten the screws crosswise with a torque wrench.",
    "Light from the star takes eight years to reach us.",
    "Please send the invoice to our office in Leeds.",
    "The novel tells of three sisters in a seaside town.",
    "Potatoes should be stored in a dark, cool place.",
    "The ferry leaves from pier four every hour.",
    "Sleep improves memory in children and adults.",
    "The army crossed the river at dawn.",
    "Employees have thirty days of leave a year.",
    "Salt lowers the freezing point of water.",
    "The choir rehearses on Thursday evenings.",
    "Copper conducts electricity better than iron.",
    "The court dismissed the appeal in March.",
    "Knit two stitches together at the end of the row.",
    "Penguins huddle to keep warm in winter.",
    "The password must have at least twelve characters.",
    "Olive trees can live for more than a thousand years.",
)


def background_cosine(encoder: PassageEncoder) -> float:
    """Mean cosine of unrelated sentences, in [-1, 1]."""
    units_SD = encoder.vectors(encoder.encoder.split(_STRANGERS))
    cosines_SS = units_SD @ units_SD.T
    return float(cosines_SS[~np.eye(len(units_SD), dtype=np.bool_)].mean())
