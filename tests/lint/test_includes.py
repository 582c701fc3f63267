"""The map is kept: every include goes down or stays inside, every library is named in its one place."""
import includes
import tree
from includes import violations


def test_every_include_is_on_the_map():
    found = violations({str(path): tree.text_of(path) for path in tree.code()})
    assert not found, "\n".join(found)


def test_every_link_between_targets_is_on_the_map():
    wrong = [f"{path}: {box} links {linked}"
             for path in tree.files() if path.name == "CMakeLists.txt"
             for box, linked in includes.links(tree.text_of(path))
             if linked != box and linked not in includes.MAY_INCLUDE[box]]
    assert not wrong, "\n".join(wrong)


def test_architecture_quotes_the_map():
    assert includes.map_text() in tree.text_of("ARCHITECTURE.md"), "ARCHITECTURE.md should say:\n" + includes.map_text()


def test_the_map_has_no_circle():
    below = {box: set(others) - {box} for box, others in includes.MAY_INCLUDE.items()}
    while free := [box for box, others in below.items() if not others]:
        for box in free:
            del below[box]
        for others in below.values():
            others.difference_update(free)
    assert not below


# The checker itself: what it must see, and what it must let pass.

def wrong(path, line):
    return violations({path: line + "\n"})


def test_an_include_that_goes_up_is_seen():
    assert wrong("base/loop.cc", '#include "rendezvous/messages.h"')
    assert wrong("rendezvous/store_core.cc", '#include "launcher/plan/plan.h"')
    assert wrong("launcher/plan/plan.cc", '#include "launcher/job/job.h"')
    assert wrong("launcher/job/job.cc", '#include "cli/messages.h"')
    assert wrong("runtime/pattern/ring.cc", '#include "runtime/backend/communicator.h"')
    assert wrong("runtime/transport/wiring.cc", '#include "runtime/backend/communicator.h"')


def test_launcher_and_runtime_do_not_know_each_other():
    assert wrong("launcher/job/job.cc", '#include "runtime/pattern/ring.h"')
    assert wrong("runtime/backend/open.cc", '#include "launcher/plan/plan.h"')
    assert wrong("runtime/capi/corro.cc", '#include "launcher/hosts/hosts.h"')
    assert wrong("launcher/agent/agent.cc", '#include "corro/corro.h"')


def test_the_command_line_knows_the_job_and_only_main_what_else_the_program_is():
    assert wrong("cli/messages.cc", '#include "launcher/supervise/supervisor.h"')
    assert wrong("cli/parse.cc", '#include "rendezvous/messages.h"')
    assert wrong("cli/parse.cc", '#include "launcher/agent/guard.h"')
    assert not wrong("cli/main.cc", '#include "launcher/agent/guard.h"')
    assert not wrong("cli/main.cc", '#include "cli/parse.h"')
    assert not wrong("cli/parse.cc", '#include "launcher/job/job.h"')


def test_an_example_knows_the_c_header_and_its_own_files():
    assert wrong("examples/train.cc", '#include "base/text.h"')
    assert wrong("examples/train.cc", '#include "runtime/capi/context.h"')
    assert not wrong("examples/train.cc", '#include "corro/corro.h"')
    assert not wrong("examples/train.cc", '#include "network.h"')


def test_the_c_header_knows_nothing_of_ours():
    assert wrong("runtime/capi/corro/corro.h", '#include "base/bytes.h"')
    assert not wrong("runtime/capi/corro/corro.h", "#include <stddef.h>")


def test_what_decides_does_not_act():
    assert wrong("launcher/plan/recipe.cc", '#include "base/process.h"')
    assert wrong("launcher/supervise/supervisor.cc", '#include "base/loop.h"')
    assert wrong("runtime/pattern/ring.cc", "#include <thread>")
    assert wrong("rendezvous/store_core.cc", "#include <unistd.h>")
    assert not wrong("launcher/plan/plan.cc", "#include <algorithm>")
    assert not wrong("rendezvous/store_server.cc", '#include "base/loop.h"')


def test_a_library_outside_its_place_is_seen():
    assert wrong("base/socket.cc", "#include <asio/io_context.hpp>")
    assert wrong("launcher/job/job.cc", "#include <spdlog/spdlog.h>")
    assert wrong("rendezvous/store_server.cc", "#include <openssl/hmac.h>")
    assert wrong("launcher/job/job.cc", "#include <nlohmann/json.hpp>")
    assert wrong("launcher/hosts/hosts.cc", "#include <CLI/CLI.hpp>")
    assert wrong("launcher/session/session.cc", "#include <libssh/libssh.h>")
    assert wrong("runtime/backend/open.cc", "#include <mpi.h>")
    assert wrong("runtime/backend/native/open.cc", "#include <gloo/allreduce.h>")
    assert wrong("base/text.cc", "#include <catch2/catch.hpp>")
    assert wrong("tests/unit/base/text_test.cc", "#include <asio.hpp>")
    assert not wrong("base/loop.cc", "  #  include <asio/io_context.hpp>")
    assert not wrong("runtime/backend/gloo/ring.cc", "#include <gloo/allreduce.h>")


def test_fmt_stays_out_of_headers():
    assert wrong("base/text.h", "#include <fmt/format.h>")
    assert not wrong("base/text.cc", "#include <fmt/format.h>")


def test_a_library_or_a_folder_that_nobody_has_entered_is_seen():
    assert wrong("base/text.cc", "#include <boost/any.hpp>")
    assert wrong("base/text.cc", "#include <zlib.h>")
    assert wrong("telemetry/push.cc", "int x;")
    assert wrong("base/text.cc", '#include "telemetry/push.h"')
    assert not wrong("base/text.cc", "#include <sys/socket.h>\n#include <vector>\n#include <unistd.h>")


def test_a_link_that_goes_up_is_seen():
    text = "corro_library(corro_plan SOURCES plan/plan.cc\n  LINKS corro_hosts corro_job fmt::fmt)\n"
    assert list(includes.links(text)) == [("launcher/plan", "launcher/hosts"), ("launcher/plan", "launcher/job")]
