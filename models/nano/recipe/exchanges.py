"""Questions with a line of thought and an answer, one function for each kind; all from a random generator and facts."""

import dataclasses
import json
import random

from facts import Facts


@dataclasses.dataclass(frozen=True)
class Exchange:
    question: str
    thought: str
    answer: str


def definition(rng: random.Random, facts: Facts) -> Exchange:
    fact = rng.choice(facts.meanings)
    article = "" if fact.word[0].isupper() or fact.kind != "noun" else "an " if fact.word[0] in "aeiou" else "a "
    question = rng.choice(
        (
            f"What is {article}{fact.word}?",
            f'What does "{fact.word}" mean?',
            f"Define {fact.word}.",
            f"Explain the word {fact.word}.",
            f"what is {fact.word}",
            f"Meaning of {fact.word}?",
        )
    )
    answer = f"{fact.word[0].upper()}{fact.word[1:]} ({fact.kind}): {fact.gloss}."
    if fact.synonyms:
        answer += f" Also called {' or '.join(fact.synonyms)}."
    return Exchange(
        question, f'The user asks about the word "{fact.word}". It is a {fact.kind}. It means: {fact.gloss}.', answer
    )


def word_for(rng: random.Random, facts: Facts) -> Exchange:
    fact = rng.choice(facts.meanings)
    return Exchange(
        rng.choice((f'Which {fact.kind} means "{fact.gloss}"?', f'What is the word for "{fact.gloss}"?')),
        f'The user wants a {fact.kind} that means "{fact.gloss}". That is "{fact.word}".',
        f'The word is "{fact.word}".',
    )


def command(rng: random.Random, facts: Facts) -> Exchange:
    fact = rng.choice(facts.commands)
    if rng.random() < 0.5:
        return Exchange(
            rng.choice((f"What does {fact.name} do?", f"What is {fact.name} for?", f"Explain `{fact.name}`.")),
            f"The user asks about {fact.name}. Its manual page says: {fact.purpose}.",
            f"`{fact.name}`: {fact.purpose}.",
        )
    return Exchange(
        rng.choice(
            (
                f"Which manual page is about this: {fact.purpose}?",
                f"Which command or function is for this: {fact.purpose}?",
            )
        ),
        f'The manual page that says "{fact.purpose}" is {fact.name}.',
        f"That is `{fact.name}`.",
    )


def german_command(rng: random.Random, facts: Facts) -> Exchange:
    fact = rng.choice(facts.german)
    return Exchange(
        rng.choice((f"Was macht {fact.name}?", f"Wozu dient {fact.name}?", f"Erkläre {fact.name}.")),
        f"Gefragt ist nach {fact.name}. Die Handbuchseite sagt: {fact.purpose}.",
        f"`{fact.name}`: {fact.purpose}.",
    )


def function(rng: random.Random, facts: Facts) -> Exchange:
    fact = rng.choice(facts.functions)
    purpose = fact.purpose.rstrip(".")
    return Exchange(
        rng.choice(
            (f"Write a Python function {fact.name}: {purpose}.", f"Show me Python code for `{fact.name}`. {purpose}.")
        ),
        f"The user wants a Python function named {fact.name}. {purpose}.",
        f"```python\n{fact.code}\n```",
    )


def arithmetic(rng: random.Random, facts: Facts) -> Exchange:
    del facts
    sign = rng.choice("+-*")
    limit = 12 if sign == "*" else rng.choice((10, 20, 100))
    a, b = rng.randint(0, limit), rng.randint(0, limit)
    result = {"+": a + b, "-": a - b, "*": a * b}[sign]
    name = {"+": "plus", "-": "minus", "*": "times"}[sign]
    asked = rng.choice((f"{a} {sign} {b}", f"{a} {name} {b}"))
    question = rng.choice((f"What is {asked}?", f"Calculate {asked}.", f"How much is {asked}?", f"{asked} = ?"))
    return Exchange(
        question,
        f"{a} {sign} {b} = {result}.",
        rng.choice((f"{asked} is {result}.", f"{a} {sign} {b} = {result}."))
        if rng.random() < 0.7
        else f"The answer is {result}.",
    )


NAMES = (
    "Ada Alice Amir Anna Ben Boris Carla Chen Clara David Elena Emil Eva Felix Frida Hana Hugo Ida Inge Ivan Jan "
    "Julia Kai Lena Leo Lina Mara Max Mia Mila Nina Noah Olga Omar Paul Petra Rosa Sam Sara Tim Tom Vera Yuki Zoe"
).split()
CITIES = (
    "Athens Berlin Bern Boston Cairo Delhi Dublin Geneva Hamburg Helsinki Kyoto Lagos Lima Lisbon London Madrid "
    "Milan Nairobi Oslo Paris Prague Quito Riga Rome Seoul Sofia Sydney Tokyo Toronto Vienna Warsaw Zurich"
).split()
COLOURS = "black blue brown gold green grey orange pink purple red silver white yellow".split()
THINGS = (
    "apple bag ball bell book bottle box bridge camera chair clock coat cup desk door drum flag fork garden "
    "hammer hat key kite knife lamp letter map mirror needle orange paper pen phone piano ring rope shoe spoon "
    "stone table tent ticket train umbrella violin wheel window"
).split()
KEYS = "port host user mode size colour timeout language path level region owner format retries width height".split()


def _record(rng: random.Random) -> dict:
    values = {
        "port": rng.randint(80, 9999),
        "host": f"{rng.choice(THINGS)}.example",
        "user": rng.choice(NAMES).lower(),
        "mode": rng.choice(("fast", "safe", "slow", "test")),
        "size": rng.randint(1, 500),
        "colour": rng.choice(COLOURS),
        "timeout": rng.randint(1, 60),
        "language": rng.choice(("en", "de", "fr")),
        "path": f"/{rng.choice(THINGS)}/{rng.choice(THINGS)}",
        "level": rng.randint(0, 9),
        "region": rng.choice(CITIES),
        "owner": rng.choice(NAMES),
        "format": rng.choice(("json", "text", "xml")),
        "retries": rng.randint(0, 9),
        "width": rng.randint(10, 900),
        "height": rng.randint(10, 900),
    }
    return {key: values[key] for key in rng.sample(KEYS, rng.randint(2, 6))}


def look_up(rng: random.Random, facts: Facts) -> Exchange:
    del facts
    record = _record(rng)
    key = rng.choice(list(record))
    shown = rng.choice(
        (
            json.dumps(record),
            json.dumps(record, indent=2),
            "\n".join(f"{name} = {value}" for name, value in record.items()),
            "\n".join(f"- {name}: {value}" for name, value in record.items()),
        )
    )
    question = rng.choice(
        (
            f"What is the {key} here?\n\n{shown}",
            f"{shown}\n\nWhat is the {key}?",
            f"Here are the settings:\n\n{shown}\n\nTell me the {key}.",
        )
    )
    return Exchange(
        question, f"The settings have the key {key}. Its value is {record[key]}.", f"The {key} is {record[key]}."
    )


def who_has_what(rng: random.Random, facts: Facts) -> Exchange:
    del facts
    people = rng.sample(NAMES, rng.randint(2, 5))
    have = {name: (rng.choice(COLOURS), thing) for name, thing in zip(people, rng.sample(THINGS, len(people)))}
    story = " ".join(f"{name} has a {colour} {thing}." for name, (colour, thing) in have.items())
    name = rng.choice(people)
    colour, thing = have[name]
    question, answer = rng.choice(
        (
            (f"Who has the {thing}?", f"{name} has the {thing}."),
            (f"What does {name} have?", f"{name} has a {colour} {thing}."),
            (f"What colour is the {thing}?", f"The {thing} is {colour}."),
        )
    )
    return Exchange(f"{story} {question}", f"The text says: {name} has a {colour} {thing}.", answer)


def where_they_live(rng: random.Random, facts: Facts) -> Exchange:
    del facts
    people = rng.sample(NAMES, rng.randint(2, 5))
    homes = dict(zip(people, rng.sample(CITIES, len(people))))
    story = " ".join(f"{name} lives in {city}." for name, city in homes.items())
    name = rng.choice(people)
    question, answer = rng.choice(
        (
            (f"Where does {name} live?", f"{name} lives in {homes[name]}."),
            (f"Who lives in {homes[name]}?", f"{name} lives in {homes[name]}."),
        )
    )
    return Exchange(f"{story} {question}", f"The text says that {name} lives in {homes[name]}.", answer)


def repetition(rng: random.Random, facts: Facts) -> Exchange:
    sentence = rng.choice(facts.sentences)
    return Exchange(
        rng.choice((f"Repeat this: {sentence}", f"Say the following sentence again.\n\n{sentence}")),
        "The user wants the sentence again, word for word.",
        sentence,
    )


ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


def list_item(rng: random.Random, facts: Facts) -> Exchange:
    del facts
    items = rng.sample(rng.choice((THINGS, CITIES, NAMES, COLOURS)), rng.randint(3, 6))
    shown = rng.choice((", ".join(items), "\n" + "\n".join(f"- {item}" for item in items)))
    if rng.random() < 0.3:
        return Exchange(
            f"How many items are in this list? {shown}",
            "Counting: " + ", ".join(f"{n} {item}" for n, item in enumerate(items, 1)) + ".",
            f"There are {len(items)} items.",
        )
    place = rng.randrange(len(items))
    return Exchange(
        f"What is the {ORDINALS[place]} item of this list? {shown}",
        "Counting: " + ", ".join(f"{n} {item}" for n, item in enumerate(items[: place + 1], 1)) + ".",
        f"The {ORDINALS[place]} item is {items[place]}.",
    )


def as_json(rng: random.Random, facts: Facts) -> Exchange:
    del facts
    record = _record(rng)
    shown = ", ".join(f"{name} {value}" for name, value in record.items())
    return Exchange(f"Write this as JSON: {shown}", f"The keys are {', '.join(record)}.", json.dumps(record))


SMALL_TALK = (
    (
        ("Hello!", "Hello", "Hi", "Hi there!", "Hey", "Good morning!", "Good evening."),
        "The user greets me.",
        ("Hello! How can I help you?", "Hi! What can I do for you?"),
    ),
    (
        ("Hello, how are you?", "How are you?", "How are you today?"),
        "The user asks how I am.",
        ("I am well, thank you. How can I help you?",),
    ),
    (
        ("Thank you!", "Thanks", "Thanks a lot!", "Great, thank you."),
        "The user thanks me.",
        ("You are welcome!", "You are welcome. Is there anything else?"),
    ),
    (
        ("Who are you?", "What are you?", "What is your name?", "Introduce yourself.", "Tell me about yourself."),
        "The user asks who I am.",
        (
            "I am Nano, a very small language model that ships with Hearth. I can define words, explain commands and call tools.",
        ),
    ),
    (
        ("What can you do?", "How can you help me?", "Help"),
        "The user asks what I can do.",
        ("I can say what words mean, what commands do, read values out of a text, do small sums and call tools.",),
    ),
    (("Goodbye!", "Bye", "See you later."), "The user says goodbye.", ("Goodbye!", "Goodbye! Have a nice day.")),
    (("Guten Tag!", "Hallo!", "Guten Morgen"), "Der Benutzer grüßt mich.", ("Guten Tag! Wie kann ich helfen?",)),
    (("Danke!", "Vielen Dank."), "Der Benutzer bedankt sich.", ("Gern geschehen!",)),
)


def small_talk(rng: random.Random, facts: Facts) -> Exchange:
    del facts
    said, thought, replies = rng.choice(SMALL_TALK)
    return Exchange(rng.choice(said), thought, rng.choice(replies))


# Kind and weight: how often it is drawn.
KINDS = (
    (definition, 28),
    (word_for, 6),
    (command, 10),
    (german_command, 3),
    (function, 8),
    (arithmetic, 8),
    (look_up, 9),
    (who_has_what, 6),
    (where_they_live, 5),
    (repetition, 6),
    (list_item, 4),
    (as_json, 4),
    (small_talk, 7),
)


def exchange(rng: random.Random, facts: Facts) -> Exchange:
    kinds, weights = zip(*KINDS)
    return rng.choices(kinds, weights)[0](rng, facts)
