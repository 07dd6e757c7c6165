"""English word lists: function words, cues of negation, quantifiers, modal verbs, units, dates, opposites.

They hold what WordNet lacks: function words, implicative verbs (Karttunen 1971), opposites of prepositions and adverbs,
and opposites that WordNet files under other senses. All lists were written by hand for this project.
"""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _pairs(text: str) -> frozenset[frozenset[str]]:
    return frozenset(frozenset(pair.split()) for pair in text.split(", "))


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
PRONOUNS = {
    form: base
    for base, forms in {
        "i": "i me myself",
        "we": "we us ourselves",
        "you": "you yourself",
        "he": "he him himself",
        "she": "she her herself",
        "they": "they them themselves",
    }.items()
    for form in forms.split()
}
LIGHT = _words(
    "be have do get take make go come give put keep let begin start person people somebody someone something thing "
    "time way lot kind sort"
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
POSITIVE_IMPLICATIVES = _words(
    "manage manages managed managing succeed succeeds succeeded succeeding remember remembers remembered remembering "
    "happen happens happened bother bothers bothered able allowed permitted possible true likely willing try tries "
    "tried allow allows permit permits want wants wanted"
)
COMPLEMENT = _words("to from in that of using")  # between an implicative verb and what it implies
ALL = _words("all every each everyone everybody everything both always everywhere entire whole")
MANY = _words("many lots plenty most mostly often usually frequently numerous")
SOME = _words("some several someone somebody something sometimes somewhere partly")
FEW = _words("few rarely seldom little hardly scarcely")
QUANTIFIERS = (
    dict.fromkeys(ALL, "all") | dict.fromkeys(MANY, "many") | dict.fromkeys(SOME, "some") | dict.fromkeys(FEW, "few")
)
OBLIGING = _words("must required obliged obligatory mandatory compulsory shall")
PERMITTING = _words("may can could might allowed permitted")

UNITS = {
    name: (dimension, factor)
    for dimension, names in {
        "mass": {
            1e-3: "mg milligram milligrams milligramme",
            1.0: "g gram grams gramme grammes",
            1e3: "kg kilo kilos kilogram kilograms kilogramme kilogrammes",
            1e6: "t tonne tonnes",
            453.59: "lb lbs pound pounds",
            28.35: "oz ounce ounces",
        },
        "length": {
            1e-3: "mm millimetre millimetres millimeter millimeters",
            1e-2: "cm centimetre centimetres centimeter centimeters",
            1.0: "m metre metres meter meters",
            1e3: "km kilometre kilometres kilometer kilometers",
            1609.34: "mile miles mi",
            0.3048: "foot feet ft",
            0.0254: "inch inches",
        },
        "duration": {
            1.0: "s sec second seconds",
            60.0: "min minute minutes",
            3600.0: "h hr hour hours",
            86400.0: "day days",
            604800.0: "week weeks fortnight",
            2629800.0: "month months",
            31557600.0: "year years",
        },
        "share": {0.01: "% percent"},
        "volume": {1e-3: "ml millilitre millilitres", 1.0: "l litre litres liter liters"},
    }.items()
    for factor, words in names.items()
    for name in words.split()
}
NUMBERS = {
    name: float(value)
    for value, name in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen".split()
    )
} | {
    name: 10.0 * (value + 2)
    for value, name in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split())
}
ORDINALS = {
    name: str(place)
    for place, name in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
        "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth".split(),
        start=1,
    )
}
SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "dozen": 12.0}
SPECIAL = {"half": 0.5, "twice": 2.0, "double": 2.0, "pair": 2.0, "couple": 2.0}
MONTHS = {
    form: name[:3]
    for name in "january february march april may june july august september october november december".split()
    for form in (name, name[:3])
    if form not in ("may", "mar", "march")
}
AMBIGUOUS_MONTHS = {"may": "may", "march": "mar"}
WEEKDAYS = {
    form: name
    for name in "monday tuesday wednesday thursday friday saturday sunday".split()
    for form in (name, name + "s")
}
RELATIVE_DAYS = {"today": "0", "tonight": "0", "yesterday": "-1", "tomorrow": "1"}
SEASONS = dict.fromkeys("spring summer autumn winter".split()) | {"fall": None}
COLOURS = _words("black white red blue green yellow orange purple pink brown grey gray golden silver")
CLOCK = {"noon": "12:00 pm", "midday": "12:00 pm", "midnight": "12:00 am"}
TIME_SUFFIXES = _words("o'clock am pm")

OPPOSITES = _pairs(
    "survive die, sell keep, remember forget, pass fail, accept reject, manage fail, succeed fail, block clear, "
    "block open, clear obstruct, safe dangerous, more less, early late, often never, often rarely, always never, "
    "always rarely, always seldom, often seldom, usually rarely, cheap expensive, easy difficult, true false, start "
    "end, start stop, begin end, begin stop, win lose, gain lose, find lose, arrive leave, arrive depart, enter "
    "leave, push pull, buy sell, borrow lend, teach learn, alive dead, live die, on off, full empty, full vacant, "
    "many few, increase fall, increase drop, rise drop, rise sink, grow shrink, up down, approve reject, cancel "
    "confirm, hire fire, allow forbid, permit prohibit, agree disagree, agree refuse, employ dismiss, sit stand, "
    "sleep wake, awake asleep, guilty innocent, deny confirm, deny admit, praise criticize, praise complain, free "
    "taken, free occupied, vacant taken, late punctual, together apart, together separately, upstairs downstairs, "
    "indoors outdoors, forwards backwards, forward backward, clockwise anticlockwise, clockwise counterclockwise, "
    "north south, east west, temporarily permanently, old modern, ancient modern, happy sad, build destroy, build "
    "demolish, create destroy, melt freeze, profit loss, reward punish, praise blame, expert beginner, kind cruel, "
    "flat steep, sweet bitter, dangerous harmless, real fake, boring exciting, calm nervous, hungry full, healthy "
    "sick, healthy ill, voluntary compulsory, vacant occupied, broken intact, decline grow, rough gentle, crowded "
    "empty, crowded deserted, fact fiction, truth lie, save waste, noisy peaceful, punctual delayed"
)
OPPOSITE_PREPOSITIONS = _pairs(
    "in out, inside outside, before after, with without, on off, above below, over under, up down, to from, into "
    "out, onto off, for against, until since, above under, over below, beside inside, on under, towards away, "
    "before since, in outside, within outside"
)
# They say the same about both arguments.
MUTUAL = frozenset(
    "meet marry differ equal resemble cooperate collaborate border be and talk speak chat married met similar "
    "different near between sister cousin friend neighbour neighbor colleague partner dance play fight argue agree "
    "match".split()
)
BEFORE_MONTH = _words("in of since until by late early mid last next this")
SUBJECTS = frozenset(PRONOUNS) | _words("it this that nobody everyone everybody someone somebody all none something")
INDEFINITE = _words("a an some there no nobody someone somebody people")
SAME_PAST = _words("beat hit cut put let hurt cost set shut quit bet")
PHRASE_BORDERS = BORDERS | RELATIVE | BE | MODALS | {"and", "or"}
FUNCTION_WORDS = DETERMINERS | BE | HAVE | DO | MODALS | FILLERS | PREPOSITIONS | NOT | frozenset(QUANTIFIERS)
# They exclude each other for one person, but a text about one seldom contradicts a text about the other.
COUNTERPARTS = _words(
    "man woman men women boy girl boys girls male female brother sister mother father son daughter lady gentleman "
    "uncle aunt king queen husband wife guy kid child adult day night"
)
OPPOSITE_QUANTIFIERS = _pairs("many few, all few, above below")
# Prepositions that introduce the patient of a verb without an object: "gave it to", "cheaper than".
LINKS_PATIENT = _words("than to from at against over before after of above below behind under")
IMPLICATIVES = POSITIVE_IMPLICATIVES | NEGATIVE_IMPLICATIVES | FORBIDDEN
PARTICLE = "particle"  # a preposition without a phrase: "went up"
BOUNDS = {
    tuple(phrase.split()): bound
    for bound, phrases in {
        "above": ("at least", "more than", "no less", "no fewer"),
        "below": ("at most", "less than", "fewer than", "no more", "up to"),
    }.items()
    for phrase in phrases
}
