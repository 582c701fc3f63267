// spawn_floor N PROGRAM [ARGUMENT…]: what any launcher has to do at the least.  Starts N processes,
// each with a pipe for stdout and one for stderr, reads both to their end, and reaps.
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

bool start(char** argv, std::vector<pollfd>& streams) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  int ends[2][2];
  for (int stream = 0; stream < 2; ++stream) {
    if (pipe2(ends[stream], O_CLOEXEC) != 0) return false;
    posix_spawn_file_actions_adddup2(&actions, ends[stream][1], stream + 1);
    streams.push_back({ends[stream][0], POLLIN, 0});
  }
  pid_t pid;
  const bool started = posix_spawnp(&pid, argv[0], &actions, nullptr, argv, environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  for (auto& pair : ends) close(pair[1]);
  return started;
}

void read_to_the_end(std::vector<pollfd>& streams) {
  for (std::size_t open = streams.size(); open > 0;) {
    poll(streams.data(), streams.size(), -1);
    for (pollfd& stream : streams) {
      char buffer[4096];
      if (!stream.revents || stream.fd < 0 || read(stream.fd, buffer, sizeof buffer) > 0) continue;
      close(stream.fd);
      stream.fd = -1;
      --open;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::fputs("usage: spawn_floor N PROGRAM [ARGUMENT...]\n", stderr), 2;
  const int n = std::atoi(argv[1]);
  std::vector<pollfd> streams;
  for (int i = 0; i < n; ++i)
    if (!start(argv + 2, streams)) return std::perror("spawn_floor"), 1;
  read_to_the_end(streams);
  int bad = 0, status = 0;
  while (wait(&status) > 0) bad += status != 0;
  return bad != 0;
}
