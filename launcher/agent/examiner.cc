#include "launcher/agent/examiner.h"

#include <utility>

namespace corro::launcher::agent {

namespace {

constexpr auto kPatience = std::chrono::milliseconds(1500);

std::vector<pid_t> pids_of(const std::vector<Examiner::Subject>& subjects) {
  std::vector<pid_t> out;
  for (const Examiner::Subject& subject : subjects) out.push_back(subject.pid);
  return out;
}

}  // namespace

void Examiner::examine(std::vector<Subject> subjects, Done done) {
  if (under_way_) return;
  const auto deadline = Deadline::in(kPatience);
  Examination examination(pids_of(subjects), deadline);
  under_way_.emplace(UnderWay{std::move(subjects), std::move(done), std::move(examination)});
  if (under_way_->examination.fd() >= 0)
    under_way_->watch =
        loop_.watch(under_way_->examination.fd(), corro::Ready::read, [this] { advance(); });
  under_way_->deadline = loop_.at(deadline.at, [this] { advance(); });
  advance();
}

void Examiner::advance() {
  if (!under_way_->examination.advance()) return;
  // The watch goes before the descriptor that it watches.
  under_way_->watch = {};
  UnderWay over = std::move(*under_way_);
  under_way_.reset();
  over.done(over.subjects, over.examination.take());
}

}  // namespace corro::launcher::agent
