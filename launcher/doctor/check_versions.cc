#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "launcher/doctor/agreement.h"
#include "launcher/doctor/ledger.h"

namespace corro::launcher::doctor {

namespace {

using Where = Remedy::Where;

// "3.11.2" → "3.11": what has to be equal for bytecode and pickles.
std::string minor_of(const std::string& version) {
  const auto first = version.find('.');
  return version.substr(0, first == version.npos ? first : version.find('.', first + 1));
}

std::string major_of(const std::string& version) {
  return version.substr(0, version.find('.'));
}

std::string elsewhere(const std::string& name, const std::string& value, const std::string& usual) {
  if (value.empty()) return fmt::format("there is no {}, elsewhere it is {}", name, usual);
  if (usual.empty()) return fmt::format("{} is {}, elsewhere there is none", name, value);
  return fmt::format("{} is {}, elsewhere it is {}", name, value, usual);
}

std::string python_version(const Inspection& seen) {
  return seen.python ? seen.python->version : "";
}

// One that could not be asked is told of as such.
void check_python(const Consultation& consultation, Ledger& to) {
  const Agreement minor(consultation,
                        [](const Inspection& seen) { return minor_of(python_version(seen)); });
  for (const auto& [host, value] : minor.odd_ones()) {
    if (!host->seen->python) continue;
    const std::string wanted = minor.usual().empty() ? "" : "python" + minor.usual();
    to.add(*host,
           {minor.usual().empty() ? Severity::note : Severity::bad,
            Class::versions,
            elsewhere("Python", value, minor.usual()),
            {Where::there, "sudo apt-get install -y " + (wanted.empty() ? "python3" : wanted)}});
  }
  for (const HostReport& host : consultation.hosts)
    for (const Trouble& trouble : host.seen ? host.seen->troubles : std::vector<Trouble>())
      if (trouble.about == Trouble::About::python)
        to.add(host, {Severity::warning,
                      Class::versions,
                      "its Python could not be asked",
                      {Where::there, "python3 --version; type -a python3"},
                      trouble.text});
}

std::string version_of(const std::vector<Installed>& all, const std::string& name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Installed& i) { return i.name == name; });
  return found == all.end() ? "" : found->version;
}

std::set<std::string> packages_anywhere(const Consultation& consultation) {
  std::set<std::string> names;
  for (const HostReport& host : consultation.hosts)
    if (host.seen && host.seen->python)
      for (const Installed& package : host.seen->python->packages) names.insert(package.name);
  return names;
}

Remedy install(const HostReport& host, const std::string& name, const std::string& version) {
  const std::string python =
      host.seen->python && !host.seen->python->path.empty() ? host.seen->python->path : "python3";
  return {Where::there,
          version.empty()
              ? fmt::format("{} -m pip uninstall -y {}", shell_word(python), name)
              : fmt::format("{} -m pip install {}=={}", shell_word(python), name, version)};
}

// Whether two versions of it in one job are asking for trouble, or only may be.
Severity weight_of(const std::string& package, bool lacks) {
  if (package == "numpy" || package == "keras") return Severity::warning;
  return lacks || !package.starts_with("nvidia-cuda") ? Severity::bad : Severity::warning;
}

void check_package(const Consultation& consultation, const std::string& name, Ledger& to) {
  const Agreement versions(consultation, [&](const Inspection& seen) {
    return seen.python ? version_of(seen.python->packages, name) : "";
  });
  for (const auto& [host, value] : versions.odd_ones()) {
    if (!host->seen->python || host->seen->python->path.empty()) continue;
    // What a few have besides is in nobody's way.
    const auto severity =
        versions.usual().empty() ? Severity::note : weight_of(name, value.empty());
    to.add(*host, {severity, Class::versions, elsewhere(name, value, versions.usual()),
                   install(*host, name, versions.usual())});
  }
}

struct LibraryText {
  const char* name;
  Severity severity;
  std::string (*package)(const std::string& version);
};

// NCCL speaks with its like only; CUDA's run-time is each process's own matter.
const LibraryText kLibraries[] = {
    {"NCCL", Severity::bad, [](const std::string& v) { return fmt::format("'libnccl2={}*'", v); }},
    {"CUDA", Severity::warning,
     [](const std::string& v) {
       auto minor = minor_of(v);
       std::replace(minor.begin(), minor.end(), '.', '-');
       return "cuda-cudart-" + minor;
     }},
};

void check_library(const Consultation& consultation, const LibraryText& text, Ledger& to) {
  const Agreement versions(
      consultation, [&](const Inspection& seen) { return version_of(seen.libraries, text.name); });
  for (const auto& [host, value] : versions.odd_ones()) {
    const bool more = versions.usual().empty();
    to.add(*host,
           {more ? Severity::note : text.severity,
            Class::versions,
            elsewhere(text.name, value, versions.usual()),
            {Where::there, more ? std::string("ldconfig -p | grep -i ") + text.name
                                : "sudo apt-get install -y " + text.package(versions.usual())}});
  }
}

void check_driver(const Consultation& consultation, Ledger& to) {
  const Agreement drivers(consultation, [](const Inspection& seen) { return seen.driver; });
  for (const auto& [host, value] : drivers.odd_ones())
    if (!value.empty() && !drivers.usual().empty())
      to.add(*host, {Severity::warning,
                     Class::versions,
                     elsewhere("the NVIDIA driver", value, drivers.usual()),
                     {Where::there,
                      "sudo apt-get install -y nvidia-driver-" + major_of(drivers.usual())}});
}

}  // namespace

void check_versions(const Consultation& consultation, Ledger& to) {
  check_python(consultation, to);
  for (const std::string& name : packages_anywhere(consultation))
    check_package(consultation, name, to);
  for (const LibraryText& library : kLibraries) check_library(consultation, library, to);
  check_driver(consultation, to);
}

}  // namespace corro::launcher::doctor
