"""The names that C++ sources define in the project's namespaces: types, aliases, enums and constants."""
import re

# Comments, literals and preprocessor lines, which may contain braces and keywords.
NOT_CODE = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/'
                      r"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.DOTALL | re.MULTILINE)
BREAK = re.compile(r"[{};]")
NAMESPACE = re.compile(r"(?:inline\s+)?namespace\b\s*([\w:]*)\s*$")
# The keyword and the name; attributes and base classes may stand around it.  A specialisation has `<` there.
TYPE = re.compile(r"\b(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+(?:\[\[.*?\]\]\s*)?(\w+)\s*(?:final\s*)?(?::[^:].*)?$",
                  re.DOTALL)
ALIAS = re.compile(r"\busing\s+(\w+)\s*=")
CONSTANT = re.compile(r"\bconst(?:expr|init)?\b[^()=]*?\b(k[A-Z]\w*)\s*(?:\[[^\]]*\])*\s*(?:=.*)?$", re.DOTALL)
TEMPLATE = re.compile(r"^\s*template\s*<.*?>(?=\s*(?:struct|class|union|using|inline|const))", re.DOTALL)


def blank(match):
    """As many lines as before, so that line numbers stay true."""
    return "\n" * match.group(0).count("\n")


def defined_by(statement, opens_body):
    """The name that a statement at namespace scope defines, or None."""
    statement = TEMPLATE.sub("", statement.strip())
    if opens_body and (found := TYPE.search(statement)):
        return found[1]
    for pattern in (ALIAS, CONSTANT):
        if found := pattern.search(statement):
            return found[1]
    return None


def definitions(text):
    """(qualified name, line) for each definition outside of anonymous namespaces."""
    code = NOT_CODE.sub(blank, text)
    scopes = []  # the name of a namespace, "" for an anonymous one, None for any other brace
    begin = 0
    for brace in BREAK.finditer(code):
        statement, mark = code[begin:brace.start()], brace.group(0)
        at_namespace_scope = None not in scopes
        begin = brace.end()
        if mark == "}":
            if scopes:
                scopes.pop()
            continue
        namespace = NAMESPACE.search(statement) if mark == "{" else None
        if at_namespace_scope and "" not in scopes and not namespace:
            if name := defined_by(statement, mark == "{"):
                yield "::".join([*scopes, name]), code.count("\n", 0, brace.start()) + 1
        if mark == "{":
            scopes.append(namespace[1] if namespace and at_namespace_scope else None)


def defined_twice(sources):
    """A sentence for each qualified name with two definitions; sources: path from the top → text."""
    places = {}
    for path, text in sources.items():
        for name, line in definitions(text):
            if name.startswith("corro::"):
                places.setdefault(name, []).append(f"{path}:{line}")
    return sorted(f"{name} is defined at {' and '.join(at)}" for name, at in places.items() if len(at) > 1)
