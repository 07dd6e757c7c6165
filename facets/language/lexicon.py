"""English word lists: function words, numbers. All were written by hand for this project."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


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
NUMBERS = _words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety"
)
