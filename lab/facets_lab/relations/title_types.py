"""Kinds of the entities that documents are about, read from how an encyclopedia begins: ``Ottawa is the capital of``.

The noun behind the copula of the first sentence decides (a small table), then what stands in the title's parentheses
(``Mercury (planet)``), then the end of the title (``University of Oslo``). A recogniser, where one is given, is asked
for the rest.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from facets.errors import InvalidInputError
from facets.language.files import read_lines
from facets.relations.entities import EntityFinder, EntityType
from facets_lab.relations.entity_pairs import bare_name

_NOUNS = {
    EntityType.PERSON: (
        "actor actress artist author writer novelist poet playwright composer musician singer songwriter rapper "
        "pianist guitarist drummer violinist painter sculptor architect engineer scientist physicist chemist "
        "biologist mathematician astronomer philosopher economist historian politician statesman president king "
        "queen emperor empress prince princess duke duchess pharaoh monarch sultan tsar ruler general admiral "
        "officer soldier commander leader revolutionary activist lawyer judge jurist physician psychologist "
        "psychiatrist psychoanalyst theologian priest bishop saint pope cardinal monk missionary rabbi prophet "
        "explorer navigator inventor businessman businesswoman entrepreneur industrialist banker journalist "
        "broadcaster editor critic comedian director filmmaker producer screenwriter cartoonist animator dancer "
        "choreographer conductor model footballer player cricketer golfer boxer wrestler swimmer cyclist driver "
        "athlete sprinter jockey coach manager astronaut cosmonaut pilot aviator spy criminal outlaw murderer "
        "pirate nobleman aristocrat earl count baron baroness lord lady chancellor governor senator diplomat "
        "ambassador minister programmer linguist anthropologist sociologist archaeologist geologist botanist "
        "zoologist naturalist geographer educator teacher scholar academic professor mystic orator rhetorician "
        "scribe translator humanist reformer abolitionist feminist suffragist nurse man woman member character "
        "deity god goddess hero figure nymph titan giant wizard superhero villain daughter son wife husband "
        "brother sister mother father designer photographer illustrator performer entertainer magician personality "
        "host presenter chef skater skier gymnast pitcher quarterback goaltender outfielder baseman lyricist "
        "bassist keyboardist saxophonist trumpeter organist cellist virtuoso soprano tenor baritone logician "
        "statistician cryptographer meteorologist paleontologist virologist microbiologist biochemist neurologist "
        "surgeon pharmacist essayist satirist dramatist biographer chronicler engraver printer publisher patron "
        "founder mercenary warlord nationalist anarchist communist dictator pretender heir consort noble knight "
        "samurai shogun"
    ),
    EntityType.ORGANIZATION: (
        "company corporation organization organisation band group team club university college school institute "
        "agency party bank airline manufacturer brewery conglomerate firm label orchestra church denomination "
        "order union association federation league army navy force regiment brigade division battalion corps "
        "parliament legislature senate court government ministry department commission council committee "
        "institution foundation charity society network station broadcaster channel newspaper magazine publisher "
        "retailer chain developer studio cooperative duo trio quartet ensemble choir franchise militia gang "
        "syndicate bureau authority academy gymnasium seminary alliance confederation coalition movement faction "
        "cartel congregation consortium subsidiary operator supplier provider automaker carmaker shipbuilder brand "
        "sorority fraternity lodge museum library hospital organisations"
    ),
    EntityType.PLACE: (
        "city town village municipality commune capital country nation state province region county district "
        "borough republic kingdom empire island islands archipelago peninsula continent mountain mountains range "
        "peak hill volcano river lake sea ocean bay gulf strait desert forest valley canyon plain plateau coast "
        "beach park reserve territory colony settlement suburb neighborhood neighbourhood area parish prefecture "
        "oblast canton department arrondissement township hamlet community place port harbour harbor airport "
        "station bridge tunnel road street highway motorway canal dam castle palace fortress fort cathedral abbey "
        "monastery temple mosque synagogue shrine tower building skyscraper house stadium arena theatre theater "
        "hall monument cemetery tomb pyramid ruin ruins site zoo garden gardens square island-country principality "
        "duchy dependency possession dynasty caliphate sultanate emirate seat resort location metropolis waterway "
        "stream creek tributary glacier cave crater moon planet star galaxy constellation nebula asteroid cluster "
        "railway railroad line venue observatory laboratory prison camp base spaceport aqueduct wall gate pier "
        "lighthouse mansion villa estate isthmus cape headland reef atoll lagoon wetland marsh steppe basin "
        "rainforest savanna oasis fjord enclave exclave homeland land lands polity city-state condominium "
        "protectorate mandate subdivision division bioregion"
    ),
    EntityType.WORK: (
        "film movie novel book play opera symphony song album single poem epic painting sculpture series show "
        "sitcom drama musical ballet novella story trilogy anthology collection essay treatise manuscript comic "
        "manga anime game videogame soundtrack cantata concerto oratorio hymn anthem fresco journal encyclopedia "
        "dictionary text scripture gospel codex constitution act law treaty charter document declaration memoir "
        "autobiography documentary soap program programme cartoon sketch fable ballad suite sonata quartets mass "
        "requiem textbook"
    ),
    EntityType.EVENT: (
        "war battle siege revolution rebellion revolt uprising conflict massacre festival holiday championship "
        "tournament olympics games competition race election referendum disaster earthquake eruption hurricane "
        "cyclone famine epidemic pandemic explosion accident crash assassination coup conference summit campaign "
        "operation invasion crusade genocide trial scandal crisis ceremony event period era epoch age mission "
        "expedition feast celebration match cup season strike riot protest incident attack bombing raid mutiny "
        "purge fire flood"
    ),
    EntityType.GROUP: (
        "language languages dialect dialects people peoples tribe tribes ethnicity religion sect nationality "
        "pidgin creole"
    ),
    EntityType.DATE: ("year day month decade century millennium date week"),
    EntityType.NUMBER: ("number integer prime constant"),
    EntityType.THING: (
        "species genus family breed plant tree animal bird fish insect mammal reptile dinosaur fungus bacterium "
        "virus disease disorder syndrome condition cancer infection drug medication compound element metal mineral "
        "rock acid substance chemical gas alloy material protein enzyme hormone vitamin molecule particle fruit "
        "vegetable spice herb dish soup sauce cheese bread dessert cake beverage drink beer wine whisky liquor "
        "cocktail food cuisine instrument device machine tool weapon rifle pistol gun tank missile bomb aircraft "
        "airplane helicopter fighter bomber rocket spacecraft satellite ship submarine battleship cruiser "
        "destroyer carrier vessel car automobile vehicle motorcycle bicycle locomotive train engine computer "
        "processor microprocessor console software language program system protocol standard format algorithm "
        "theorem equation theory hypothesis law principle concept idea doctrine ideology philosophy field branch "
        "discipline science study method technique process procedure practice sport martial dance music genre "
        "style movement award prize medal decoration title rank profession occupation office currency coin unit "
        "measure symbol letter alphabet font typeface word term phrase name surname color colour fabric textile "
        "garment clothing hat shoe toy flower grass shrub crop grain nut seed oil reaction phenomenon effect force "
        "energy wave light radiation property quantity function set group structure tissue organ bone muscle cell "
        "gene therapy treatment operation test technology product model type form kind class variety cultivar "
        "subspecies order phylum myth legend belief ritual sacrament meditation position state act skill art"
    ),
}
# A word in several rows has the kind of the first (``language`` of people, ``law`` of parliaments).
_KIND_OF_NOUN: dict[str, EntityType] = {}
for _kind, _words in _NOUNS.items():
    for _word in _words.split():
        _KIND_OF_NOUN.setdefault(_word, _kind)

_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_COPULA = re.compile(r"\b(?:is|was|are|were|refers to|is considered|became)\s+(?:(?:an?|the|one of the|any)\s+)?")
_EMPTY = re.compile(
    r"^(?:(?:[\w-]+ )?(?:type|kind|form|name|member|genus|species|series|family|class|group|variety|style|set|pair|"
    r"part|subset|branch|collection|title|piece|work|one)s? of )(?:the |an? )?(?=\w)"
)
_KEPT_EMPTY = re.compile(r"\b(?:genus|species|family|breed) of\b")
_SEGMENT = re.compile(r"(?:, )?\b(?:and|or) |, |/")
_PHRASE_END = re.compile(
    r"[;:.()]|(?<![\w-])(?:of|in|by|from|to|for|at|on|with|who|whose|that|which|where|when|located|situated|based|founded|"
    r"known|used|created|written|directed|published|produced|developed|made|held|fought|spoken|native|made|found|about|"
    r"near|between|during|under|as|is|was|built|formed|released|set|whom|designed|established|published)\b"
)
_WORD = re.compile(r"[A-Za-z][A-Za-z-]+")
_PARENTHESIS = re.compile(r"\(([^()]*)\)$")
_BRACKETS = re.compile(r"\([^()]*\)")
_LIFE = re.compile(
    rf"\([^()]*(?:\bborn [^()]*\d{{4}}|(?:{_MONTH}) [^()]*\d{{4}} ?[\u2013-] ?[^()]*(?:{_MONTH})[^()]*\d{{4}})"
)
_OPENING_CHARS = 600
_PHRASE_CHARS = 120
_MAX_SEGMENTS = 4
_MAX_ASKED = 20_000  # titles that a recogniser is asked about


def type_of_opening(title: str, opening: str) -> EntityType:
    """The kind of what a document is about.

    Args:
        title: Its title.
        opening: Its first paragraph.

    Returns:
        ``UNKNOWN`` where the opening does not say it.

    Example:
        >>> type_of_opening("Ottawa", "Ottawa ( ) is the capital city of Canada, and the fourth largest city.")
        <EntityType.PLACE: 'place'>
        >>> type_of_opening("Mercury (planet)", "Mercury orbits the Sun.")
        <EntityType.PLACE: 'place'>
    """
    text = opening[:_OPENING_CHARS]
    is_person = _LIFE.search(text) is not None
    for _ in range(2):  # brackets in brackets
        text = _BRACKETS.sub(" ", text)
    copula = _COPULA.search(text)
    if copula is not None:
        kind = _kind_of_phrase(text[copula.end() :])
        if kind is not EntityType.UNKNOWN:
            return kind
    if is_person:
        return EntityType.PERSON
    marked = _PARENTHESIS.search(title)
    for words in (marked.group(1) if marked else "", bare_name(title).partition(" of ")[0]):
        found = _WORD.findall(words.lower())
        if found and found[-1] in _KIND_OF_NOUN and (marked or " " in title):
            return _KIND_OF_NOUN[found[-1]]
    return EntityType.UNKNOWN


def _kind_of_phrase(text: str) -> EntityType:
    """The kind of the head of the noun phrase at the start of a text, or of one beside it."""
    if not _KEPT_EMPTY.match(text):
        text = _EMPTY.sub("", text)
    for segment in _SEGMENT.split(text[:_PHRASE_CHARS])[:_MAX_SEGMENTS]:
        end = _PHRASE_END.search(segment, 1)
        words = _WORD.findall(segment[: end.start() if end else None].lower())
        while len(words) > 1 and words[-1].endswith(("ing", "ed", "ly")):  # ``a sovereign state comprising``
            words.pop()
        for form in (words[-1], words[-1].removesuffix("s"), words[-1].rpartition("-")[2]) if words else ():
            if form in _KIND_OF_NOUN:
                return _KIND_OF_NOUN[form]
        if end is not None:
            break
    return EntityType.UNKNOWN


class TitleTypes:
    """Kinds of titles, collected over documents; names that titles share have the kind of most of them.

    Args:
        finder: Asked about titles whose opening does not say it; None: they stay unknown.
    """

    def __init__(self, finder: EntityFinder | None = None) -> None:
        self._finder = finder
        self._votes: dict[str, Counter[EntityType]] = {}
        self._unknown: dict[str, str] = {}

    def add(self, title: str, paragraphs: Sequence[str]) -> None:
        """Reads one document."""
        opening = next((paragraph for paragraph in paragraphs if len(paragraph) > 40), "")
        kind = type_of_opening(title, opening)
        name = bare_name(title)
        if kind is EntityType.UNKNOWN:
            self._unknown.setdefault(name, opening[:200])
        else:
            self._votes.setdefault(name, Counter())[kind] += 1

    def types(self) -> dict[str, EntityType]:
        """Kind of each name that has one."""
        found = {name: votes.most_common(1)[0][0] for name, votes in self._votes.items()}
        if self._finder is not None:
            asked = [name for name in self._unknown if name not in found][:_MAX_ASKED]
            for name, spans in zip(asked, self._finder.find([self._unknown[name] for name in asked]), strict=True):
                opening = self._unknown[name]
                kinds = [span.type for span in spans if opening[span.start : span.end].removeprefix("The ") == name]
                if kinds and kinds[0] is not EntityType.UNKNOWN:
                    found[name] = kinds[0]
        return found


def write_types(path: Path, types: Mapping[str, EntityType]) -> None:
    """Writes ``name<TAB>kind`` lines."""
    path.write_text("".join(f"{name}\t{kind}\n" for name, kind in sorted(types.items())), encoding="utf-8")


def read_types(path: Path) -> dict[str, EntityType]:
    """Reads what ``write_types`` wrote.

    Raises:
        InvalidInputError: A bad line; the message names file and line.
        ConfigError: The file cannot be read.
    """
    types = {}
    for number, line in enumerate(read_lines(path), start=1):
        name, tab, kind = line.partition("\t")
        if not tab or not name or kind not in set(EntityType):
            raise InvalidInputError(f"{path}, line {number}: expected name<TAB>kind of entity, got {line[:80]!r}")
        types[name] = EntityType(kind)
    return types
