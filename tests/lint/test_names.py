"""One qualified name has one meaning, and each folder has its namespace."""
import re

import names
import tree

FOLDERS = ("launcher", "cli", "rendezvous", "runtime")


def test_every_qualified_name_is_defined_once():
    found = names.defined_twice({str(path): tree.text_of(path) for path in tree.code()})
    assert not found, "\n".join(found)


def test_every_folder_keeps_to_its_namespace():
    wrong = []
    for path in tree.code():
        folder = path.parts[0]
        expected = "corro::" + folder if folder in FOLDERS else "corro" if folder == "base" else None
        for namespace in re.findall(r"^namespace (corro[\w:]*) \{", tree.text_of(path), re.MULTILINE):
            if expected and namespace != expected and not namespace.startswith(expected + "::"):
                wrong.append(f"{path} opens {namespace} instead of {expected}")
    assert not wrong, "\n".join(wrong)


# The checker itself.

def all_of(text):
    return [name for name, _ in names.definitions(text)]


def test_types_aliases_and_constants_at_namespace_scope_are_seen():
    assert all_of("""
        namespace corro::launcher {
        struct Plan { int x; struct Inner {}; };
        class [[nodiscard]] Session final : public Base { void f() { struct Local {}; } };
        enum class Phase : int { a, b };
        template <class T, class E = Error> class Result { };
        using Key = std::string;
        template <class T> using Reach = Result<T>;
        inline constexpr int kLimit = 5;
        constexpr Edge kLife[] = {{1, 2}};
        const std::string kName{"x"};
        namespace agent { struct Hello {}; }
        }""") == ["corro::launcher::" + name for name in
                  ["Plan", "Session", "Phase", "Result", "Key", "Reach", "kLimit", "kLife", "kName", "agent::Hello"]]


def test_declarations_functions_and_anonymous_namespaces_are_passed_over():
    assert all_of("""
        namespace corro {
        struct Plan;
        enum class Errc : int;
        constexpr Errc last_of(Errc) { constexpr int kIn = 1; return {}; }
        struct Error make() { return {}; }
        template <> struct Codec<int> { };
        // struct Comment {};
        const char* text = "struct String { }";
        int at(std::size_t i, const T& kind = kDefault);
        namespace { struct Hidden {}; using Names = int; }
        }""") == []


def test_a_second_definition_is_seen_with_both_places():
    one, other = "namespace corro::cli {\nstruct Table {};\n}\n", "namespace corro {\nnamespace cli {\nusing Table = int;\n}\n}\n"
    assert names.defined_twice({"a.h": one, "b.h": other}) == ["corro::cli::Table is defined at a.h:2 and b.h:3"]
    assert not names.defined_twice({"a.h": one, "b.h": other.replace("cli", "launcher")})
