"""What the cosines of an encoder mean: those of texts that have nothing in common, and of questions and their answers.

Unrelated texts have a cosine of about 0.05 with MiniLM, and of 0.75 with other encoders.
"""

import numpy as np

from facets.arrays import Floats
from facets.model.passage_encoding import PassageEncoder

# Questions of different parts of life, each with the sentence that answers it.
_ANSWERED = (
    ("When can I go to the library?", "The library opens at nine on weekdays."),
    ("May my dog run free in the park?", "Dogs must be kept on a lead in the park."),
    ("How long do I beat the eggs?", "Whisk the eggs with sugar until they are pale."),
    ("Why could nobody cross the bridge?", "The bridge was closed after the flood of 1953."),
    ("How well did her second record sell?", "Her second album sold two million copies."),
    ("What to do when the router is stuck?", "Restart the router and wait for the green light."),
    ("How far does ash from a volcano get?", "Volcanic ash can travel thousands of kilometres."),
    ("Who pays the heating bill of a flat?", "The tenant pays for water and heating."),
    ("Can I take antibiotics for a cold?", "Antibiotics do not help against viruses."),
    ("Who decided the match at the end?", "He scored twice in the final minutes of the match."),
    ("Did parliament vote for the budget?", "Parliament adopted the budget by a narrow majority."),
    ("What is returned without a match?", "The function returns an empty list when nothing matches."),
    ("How do bees say where flowers are?", "Bees tell each other where to find flowers by dancing."),
    ("By how much did interest rates go up?", "Interest rates rose by half a percentage point."),
    ("Where can one see the painting?", "The painting hangs in a small chapel near Siena."),
    ("In which order do I fasten the screws?", "Tighten the screws crosswise with a torque wrench."),
    ("How old is the light of that star?", "Light from the star takes eight years to reach us."),
    ("Where do I send the bill?", "Please send the invoice to our office in Leeds."),
    ("What is the novel about?", "The novel tells of three sisters in a seaside town."),
    ("Where should I keep potatoes?", "Potatoes should be stored in a dark, cool place."),
    ("How often does the ferry go?", "The ferry leaves from pier four every hour."),
    ("Is sleep good for remembering?", "Sleep improves memory in children and adults."),
    ("When did the soldiers get over the river?", "The army crossed the river at dawn."),
    ("How much holiday do employees get?", "Employees have thirty days of leave a year."),
    ("Why is salt put on icy roads?", "Salt lowers the freezing point of water."),
    ("On which day does the choir meet?", "The choir rehearses on Thursday evenings."),
    ("Which metal is better for wires?", "Copper conducts electricity better than iron."),
    ("What became of the appeal?", "The court dismissed the appeal in March."),
    ("How does a row of knitting end?", "Knit two stitches together at the end of the row."),
    ("How do penguins survive the cold?", "Penguins huddle to keep warm in winter."),
    ("How long must my password be?", "The password must have at least twelve characters."),
    ("How old do olive trees get?", "Olive trees can live for more than a thousand years."),
)


QUESTIONS, SENTENCES = zip(*_ANSWERED, strict=True)


def background_cosine(encoder: PassageEncoder) -> float:
    """Mean cosine of unrelated sentences, in [-1, 1]."""
    units_SD = encoder.vectors(encoder.encoder.split(SENTENCES))
    cosines_SS = units_SD @ units_SD.T
    return float(cosines_SS[~np.eye(len(units_SD), dtype=np.bool_)].mean())


def score_scale(questions_SJD: Floats, facets_SKD: Floats) -> tuple[float, float]:
    """Mean score in a search of the sentences that do not answer a question, and of those that do.

    ``questions_SJD``: facets of ``QUESTIONS`` with their weights as norms. ``facets_SKD``: facets of ``SENTENCES``;
    zero rows where there are fewer than K.
    """
    cosines_SJSK = np.tensordot(questions_SJD, facets_SKD, axes=(2, 2))
    cosines_SJSK[:, :, ~facets_SKD.any(axis=2)] = -np.inf
    scores_SS = cosines_SJSK.max(axis=3).sum(axis=1)
    others_SS = ~np.eye(len(scores_SS), dtype=np.bool_)
    return float(scores_SS[others_SS].mean()), float(scores_SS.diagonal().mean())
