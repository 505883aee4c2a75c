"""No name, password or token of a camera in anything that people or files get to see."""

import re

HIDDEN = "***"

# Up to the last @ before the path, where a password may hold spaces; and up to the last @ of the
# word, for passwords are often pasted in without escaping their @ and /.
_USER = re.compile(r"(?<=://)(?:[^/?#'\"\n]*@(?:\S*@)?|\S*@)")

# All of it: no list of names is complete.
_QUERY = re.compile(r"(?<=://)([^\s?'\"]*\?)([^\s'\"]+)")

# In the path, where some cameras take them ("/user=a&password=b&channel=1", "/token/abc"). Nothing
# here looks back over a long word again and again: a name that may have more letters before it is
# looked for once in a word, from its beginning.
_FIELD = re.compile(
    r"(?i)((?:(?<!\w)(?>\w*?(?:login|auth|cred|sig))\w*+"
    r"|use?r(?:name)?|pass?(?:word|wd|phrase)?|pwd?|token|key|secret)="
    r"|/(?:\w*token|\w*key|secret|pass(?:word|phrase)?)/)[^&;/\s'\"]+"
)


def redacted(text: str) -> str:
    """The same text, its URLs without credentials; rather too little of a URL than too much."""
    text = _USER.sub(f"{HIDDEN}@", text)
    text = _QUERY.sub(lambda found: found[1] + _values_hidden(found[2]), text)
    return _FIELD.sub(rf"\1{HIDDEN}", text)


def bare_address(url: str) -> str:
    """Host, port and path without credentials: a name for a source that was given none."""
    shown = redacted(url).partition("://")[2].removeprefix(f"{HIDDEN}@")
    return re.split(r"[?#]", shown, maxsplit=1)[0].rstrip("/")


def _values_hidden(query: str) -> str:
    fields = (field.partition("=") for field in re.split("[&;]", query))
    return "&".join(f"{name}={HIDDEN}" if given else HIDDEN for name, given, _ in fields)
