"""Tools that dialogues may call: what each is for, questions that need it, its results and the answers from them."""

import dataclasses
import random
from collections.abc import Callable

from exchanges import CITIES, NAMES, THINGS


@dataclasses.dataclass(frozen=True)
class Use:
    """One question that a tool answers."""

    question: str
    thought: str
    arguments: dict
    result: dict
    answer: str


@dataclasses.dataclass(frozen=True)
class Tool:
    names: tuple[str, ...]  # one of them is drawn
    description: str
    parameters: dict  # name -> (JSON type, description)
    use: Callable[[random.Random], Use]

    def described(self, name: str) -> dict:
        properties = {key: {"type": kind, "description": text} for key, (kind, text) in self.parameters.items()}
        return {
            "type": "function",
            "function": {
                "name": name,
                "description": self.description,
                "parameters": {"type": "object", "properties": properties, "required": list(self.parameters)},
            },
        }


def _weather(rng: random.Random) -> Use:
    city, degrees = rng.choice(CITIES), rng.randint(-10, 35)
    sky = rng.choice(("sunny", "cloudy", "rainy", "windy", "foggy", "snowy"))
    return Use(
        rng.choice(
            (
                f"What is the weather in {city}?",
                f"How is the weather in {city} today?",
                f"Is it raining in {city}?",
                f"weather {city}",
            )
        ),
        f"The user wants the weather in {city}.",
        {"city": city},
        {"city": city, "sky": sky, "degrees": degrees},
        f"It is {sky} in {city}, at {degrees} degrees.",
    )


def _time(rng: random.Random) -> Use:
    city, clock = rng.choice(CITIES), f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}"
    return Use(
        rng.choice((f"What time is it in {city}?", f"Tell me the time in {city}.", f"How late is it in {city}?")),
        f"The user wants the time in {city}.",
        {"city": city},
        {"time": clock},
        f"It is {clock} in {city}.",
    )


def _calculate(rng: random.Random) -> Use:
    a, b = rng.randint(100, 9999), rng.randint(100, 9999)
    sign, name = rng.choice((("+", "plus"), ("-", "minus"), ("*", "times")))
    result = {"+": a + b, "-": a - b, "*": a * b}[sign]
    return Use(
        rng.choice((f"What is {a} {name} {b}?", f"Calculate {a} {sign} {b}.", f"How much is {a} {sign} {b}?")),
        f"This is a large sum. The tool can do {a} {sign} {b}.",
        {"expression": f"{a} {sign} {b}"},
        {"result": result},
        f"{a} {sign} {b} = {result}.",
    )


def _read_file(rng: random.Random) -> Use:
    path = f"{rng.choice(THINGS)}.{rng.choice(('txt', 'md', 'json', 'log'))}"
    content = f"{rng.choice(NAMES)} has a {rng.choice(THINGS)}."
    return Use(
        rng.choice((f"What is in the file {path}?", f"Read {path}.", f"Show me {path}.", f"Open {path}, please.")),
        f"The user wants to see {path}.",
        {"path": path},
        {"content": content},
        f"The file {path} says: {content}",
    )


def _list_files(rng: random.Random) -> Use:
    folder = rng.choice(("src", "docs", "tests", "home", "build", "data", "tmp"))
    files = [f"{thing}.{rng.choice(('txt', 'py', 'c'))}" for thing in rng.sample(THINGS, rng.randint(1, 4))]
    return Use(
        rng.choice((f"Which files are in {folder}?", f"List the folder {folder}.", f"What is in the folder {folder}?")),
        f"The user wants the files of {folder}.",
        {"folder": folder},
        {"files": files},
        f"The folder {folder} has {', '.join(files)}.",
    )


def _send(rng: random.Random) -> Use:
    to, text = (
        rng.choice(NAMES),
        rng.choice(
            (
                "See you soon.",
                "Call me, please.",
                "The train is late.",
                "Happy birthday!",
                f"Bring the {rng.choice(THINGS)}.",
                f"I am in {rng.choice(CITIES)}.",
            )
        ),
    )
    return Use(
        rng.choice((f"Send {to} this message: {text}", f"Tell {to}: {text}", f"Write to {to}: {text}")),
        f"The user wants to send a message to {to}.",
        {"to": to, "text": text},
        {"sent": True},
        f"I have sent your message to {to}.",
    )


def _translate(rng: random.Random) -> Use:
    word, language = rng.choice(THINGS), rng.choice(("French", "Italian", "Spanish", "Polish", "Greek"))
    result = "".join(rng.choice("bdfglmnprst") + rng.choice("aeiou") for _ in range(rng.randint(2, 3)))
    return Use(
        rng.choice((f'What is "{word}" in {language}?', f"Translate {word} into {language}.")),
        f"The user wants {word} in {language}.",
        {"text": word, "language": language},
        {"translation": result},
        f'In {language}, "{word}" is "{result}".',
    )


def _phone(rng: random.Random) -> Use:
    name, number = rng.choice(NAMES), f"555-{rng.randint(1000, 9999)}"
    return Use(
        rng.choice((f"What is the phone number of {name}?", f"Find {name}'s number.", f"How can I call {name}?")),
        f"The user wants the number of {name}.",
        {"name": name},
        {"number": number},
        f"The number of {name} is {number}.",
    )


def _price(rng: random.Random) -> Use:
    item, price = rng.choice(THINGS), rng.randint(1, 300)
    return Use(
        rng.choice((f"How much does a {item} cost?", f"What is the price of the {item}?", f"Price of a {item}?")),
        f"The user wants the price of a {item}.",
        {"item": item},
        {"price": price, "currency": "EUR"},
        f"The {item} costs {price} EUR.",
    )


def _timer(rng: random.Random) -> Use:
    minutes = rng.randint(1, 90)
    return Use(
        rng.choice(
            (
                f"Set a timer for {minutes} minutes.",
                f"Remind me in {minutes} minutes.",
                f"Wake me in {minutes} minutes.",
            )
        ),
        f"The user wants a timer of {minutes} minutes.",
        {"minutes": minutes},
        {"started": True},
        f"The timer is set for {minutes} minutes.",
    )


def _search(rng: random.Random) -> Use:
    query = rng.choice(
        (
            f"{rng.choice(THINGS)} shop in {rng.choice(CITIES)}",
            f"history of the {rng.choice(THINGS)}",
            f"how to mend a {rng.choice(THINGS)}",
        )
    )
    title = f"All about {query}"
    return Use(
        rng.choice((f"Search for {query}.", f"Look up {query} on the web.", f"Find pages on {query}.")),
        f"The user wants a search for {query}.",
        {"query": query},
        {"results": [title]},
        f"I have found this page: {title}.",
    )


def _lamp(rng: random.Random) -> Use:
    room, state = rng.choice(("kitchen", "hall", "office", "garden", "bedroom")), rng.choice(("on", "off"))
    return Use(
        rng.choice((f"Turn {state} the light in the {room}.", f"Switch the {room} light {state}.")),
        f"The user wants the light in the {room} {state}.",
        {"room": room, "state": state},
        {"ok": True},
        f"The light in the {room} is {state} now.",
    )


CATALOGUE = (
    Tool(
        ("get_weather", "weather", "current_weather", "get_current_weather"),
        "Get the current weather of a city",
        {"city": ("string", "The name of the city")},
        _weather,
    ),
    Tool(
        ("get_time", "current_time", "clock"), "Get the current time in a city", {"city": ("string", "The city")}, _time
    ),
    Tool(
        ("calculate", "calculator", "evaluate"),
        "Evaluate an arithmetic expression",
        {"expression": ("string", "The expression, such as 2 + 3")},
        _calculate,
    ),
    Tool(("read_file", "open_file", "cat"), "Read a file", {"path": ("string", "Path of the file")}, _read_file),
    Tool(
        ("list_files", "list_folder", "ls"),
        "List the files of a folder",
        {"folder": ("string", "The folder")},
        _list_files,
    ),
    Tool(
        ("send_message", "send_mail", "notify"),
        "Send a message to a person",
        {"to": ("string", "Who gets it"), "text": ("string", "The message")},
        _send,
    ),
    Tool(
        ("translate", "translate_text"),
        "Translate a text",
        {"text": ("string", "The text"), "language": ("string", "The language to translate into")},
        _translate,
    ),
    Tool(
        ("find_contact", "phone_book", "get_phone_number"),
        "Find the phone number of a person",
        {"name": ("string", "The person")},
        _phone,
    ),
    Tool(
        ("get_price", "price_of", "lookup_price"),
        "Look up what a thing costs",
        {"item": ("string", "The thing")},
        _price,
    ),
    Tool(
        ("set_timer", "start_timer", "remind"), "Start a timer", {"minutes": ("integer", "Length in minutes")}, _timer
    ),
    Tool(
        ("search", "web_search", "find_pages"), "Search the web", {"query": ("string", "What to search for")}, _search
    ),
    Tool(
        ("switch_light", "set_light", "lamp"),
        "Switch a light on or off",
        {"room": ("string", "The room"), "state": ("string", "on or off")},
        _lamp,
    ),
)
