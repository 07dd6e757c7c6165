"""English word lists: function words, cues of negation, numbers. All were written by hand for this project."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BORDERS = _words(", ; : . ! ? ( ) - -- but although though while whereas because since so") | {"\u2013", "\u2014"}
RELATIVE = _words("who which that whom whose where when")
DETERMINERS = _words("a an the this that these those my your his her its our their some any each every another either")
BE = _words("is are was were be been being am 's 're 'm \u2019s \u2019re \u2019m")
HAVE = _words("have has had having 've 'd \u2019ve \u2019d")
DO = _words("do does did done doing")
MODALS = _words("may might can could would should must will shall ought 'll \u2019ll wo ca need sha")
FILLERS = _words(
    "there here also then very just even still already too quite rather really so as and or if than such same own "
    "please kindly 's \u2019s s now it its itself themselves himself herself who which that what whom whose where "
    "when how why get gets got getting both much more most less least any some"
)
PREPOSITIONS = _words(
    "in on at of by to from with for into onto against over under about between among as near through during within "
    "around across after before upon off out up down via toward towards inside outside behind beyond above below "
    "until since without along beside next than despite like except per"
)
NOT = _words(
    "not n't n\u2019t never no neither nor none nobody nothing nowhere without cannot hardly scarcely barely non"
)
# These stand for "all ... not" and "somewhere ... not": they negate the whole clause.
WHOLE_CLAUSE = _words("no nobody none nothing neither nor nowhere")
# Pairs of tokens that look like a negation but are not.
NOT_NEGATIVE = frozenset(
    tuple(pair.split())
    for pair in (
        *("not only", "not just", "not merely", "not simply", "no doubt", "without doubt", "nothing but", "not least"),
        *("no later", "no more", "no less", "no sooner"),
    )
)
# Verbs and adjectives that imply that their complement did not happen or does not hold.
NEGATIVE_IMPLICATIVES = _words(
    "forget forgets forgot forgotten forgetting fail fails failed failing refuse refuses refused refusing decline "
    "declines declined neglect neglects neglected avoid avoids avoided avoiding prevent prevents prevented preventing "
    "stop stops stopped stopping cease ceases ceased quit quits lack lacks lacked lacking deny denies denied denying "
    "unable impossible miss misses missed omit omits omitted abstain abstains abstained refrain refrains refrained "
    "unwilling reluctant false untrue unlikely reject rejects rejected"
)
# They also negate what comes before them: "Smoking is prohibited".
FORBIDDEN = _words("prohibited forbidden banned disallowed prohibits forbids bans illegal prohibit forbid ban")
COMPLEMENT = _words("to from in that of using")  # between an implicative verb and what it implies

NUMBERS = _words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety"
)
PHRASE_BORDERS = BORDERS | RELATIVE | BE | MODALS | {"and", "or"}
