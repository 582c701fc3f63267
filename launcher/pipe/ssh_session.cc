#include "launcher/pipe/ssh_session.h"

#include <fmt/format.h>
#include <libssh/libssh.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "launcher/pipe/key_agent.h"
#include "launcher/pipe/ssh_wire.h"

namespace corro::launcher {

namespace {

// With AES in hardware these carry several times what libssh's first choice does.
constexpr const char* kCiphers =
    "aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,aes256-ctr,"
    "aes192-ctr,aes128-ctr";
constexpr const char* kNowhere = "/dev/null";

using Text = std::unique_ptr<char, void (*)(char*)>;

void set(ssh_session session, ssh_options_e option, const std::string& value) {
  ssh_options_set(session, option, value.c_str());
}

void set(ssh_session session, ssh_options_e option, int value) {
  ssh_options_set(session, option, &value);
}

// Known hosts and the user's configuration are read elsewhere, and here not at all.
void prepare(ssh_session session, int socket, const std::string& host, const std::string& user,
             const std::string& key_algorithms) {
  ssh_set_blocking(session, 0);
  set(session, SSH_OPTIONS_PROCESS_CONFIG, 0);
  set(session, SSH_OPTIONS_HOST, host);
  set(session, SSH_OPTIONS_USER, user);
  set(session, SSH_OPTIONS_FD, socket);
  set(session, SSH_OPTIONS_KNOWNHOSTS, std::string(kNowhere));
  set(session, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, std::string(kNowhere));
  set(session, SSH_OPTIONS_HOSTKEYS, key_algorithms);
  set(session, SSH_OPTIONS_CIPHERS_C_S, std::string(kCiphers));
  set(session, SSH_OPTIONS_CIPHERS_S_C, std::string(kCiphers));
  set(session, SSH_OPTIONS_COMPRESSION, std::string("no"));
}

std::string fingerprint_of(ssh_key key) {
  unsigned char* hash = nullptr;
  std::size_t size = 0;
  if (ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &size) != 0) return "";
  const Text text(ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, size),
                  ssh_string_free_char);
  ssh_clean_pubkey_hash(&hash);
  return text ? text.get() : "";
}

std::string base64_of(ssh_key key) {
  char* raw = nullptr;
  if (ssh_pki_export_pubkey_base64(key, &raw) != SSH_OK) return "";
  const Text text(raw, ssh_string_free_char);
  return text.get();
}

// In base64; empty if it cannot be told.  A file that wants a passphrase may show this part
// without.
std::string public_key_of(const std::string& file) {
  ssh_key key = nullptr;
  if (ssh_pki_import_pubkey_file((file + ".pub").c_str(), &key) != SSH_OK &&
      ssh_pki_import_pubkey_file(file.c_str(), &key) != SSH_OK)
    return "";
  auto text = base64_of(key);
  ssh_key_free(key);
  return text;
}

// OpenSSL would ask the terminal, or read frames, for a passphrase.  It learns that there is none.
int refuse_passphrase(const char*, char*, std::size_t, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

std::vector<std::string> names_of(int methods) {
  constexpr std::pair<int, const char*> kNames[] = {
      {SSH_AUTH_METHOD_PUBLICKEY, "publickey"},
      {SSH_AUTH_METHOD_PASSWORD, "password"},
      {SSH_AUTH_METHOD_HOSTBASED, "hostbased"},
      {SSH_AUTH_METHOD_INTERACTIVE, "keyboard-interactive"},
      {SSH_AUTH_METHOD_GSSAPI_MIC, "gssapi-with-mic"},
  };
  std::vector<std::string> out;
  for (const auto& [bit, name] : kNames)
    if (methods & bit) out.push_back(name);
  return out;
}

}  // namespace

SshSession::SshSession(Fd socket) : socket_(std::move(socket)), session_(ssh_new()) {}

SshSession::~SshSession() {
  if (host_key_) ssh_key_free(host_key_);
  if (ssh_is_connected(session_)) ssh_disconnect(session_);
  ssh_free(session_);
}

Result<std::unique_ptr<SshSession>> SshSession::shake_hands(Fd socket, const std::string& host,
                                                            const std::string& user,
                                                            const std::string& key_algorithms,
                                                            Deadline deadline) {
  // libssh closes the socket that it was given, and so do we ours.
  const int theirs = ::dup(socket.get());
  ssh_init();
  std::unique_ptr<SshSession> self(new SshSession(std::move(socket)));
  prepare(self->session_, theirs, host, user, key_algorithms);
  const int code = self->finish(SSH_AGAIN, deadline, [&] { return ssh_connect(self->session_); });
  if (code == SSH_OK) return self;
  if (code == SSH_AGAIN) return Error(Errc::timed_out, "the key exchange was not done in time");
  return Error(Errc::closed, self->error());
}

std::string SshSession::error() const {
  if (waited_too_long_) return "no answer came in time";
  const std::string text = ssh_get_error(session_);
  return text.empty() ? "the host closed the connection" : text;
}

bool SshSession::is_broken() const {
  return waited_too_long_ || !ssh_is_connected(session_);
}

// libssh keeps the reason nowhere else.
bool SshSession::is_dismissed() const {
  constexpr std::string_view kSign = "Received SSH_MSG_DISCONNECT";
  return std::string_view(ssh_get_error(session_)).starts_with(kSign);
}

Error SshSession::not_opened() const {
  return Error(is_broken() && !is_dismissed() ? Errc::peer_lost : Errc::closed,
               "opening a channel: " + error());
}

// sshd does not send a small packet while one before is not acknowledged, and the kernel would take
// 40 ms to do so.  It forgets this option after a while, so it is set again and again.
void SshSession::acknowledge_now() const {
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

bool SshSession::wait(Deadline deadline) {
  acknowledge_now();
  const bool writes = (ssh_get_poll_flags(session_) & SSH_WRITE_PENDING) != 0;
  const auto waited = await({{socket_.get(), true, writes}}, deadline);
  acknowledge_now();
  waited_too_long_ = !waited;
  return !waited_too_long_;
}

Result<HostKey> SshSession::host_key() {
  if (ssh_get_server_publickey(session_, &host_key_) != SSH_OK) return Error(Errc::io, error());
  const auto type = ssh_key_type(host_key_);
  const bool is_ecdsa = ssh_pki_key_ecdsa_name(host_key_) != nullptr &&
                        type >= SSH_KEYTYPE_ECDSA_P256 && type <= SSH_KEYTYPE_ECDSA_P521;
  const char* kind = is_ecdsa ? ssh_pki_key_ecdsa_name(host_key_) : ssh_key_type_to_char(type);
  return HostKey{host_key_, kind ? kind : "", base64_of(host_key_), fingerprint_of(host_key_)};
}

// Whether there is no more to be tried.
bool SshSession::note(int code, LoginAttempt& attempt) {
  attempt.admitted = code == SSH_AUTH_SUCCESS;
  attempt.refused |= code == SSH_AUTH_DENIED && !attempt.tried.empty();
  if (is_broken()) {
    attempt.failure = error();
    attempt.dismissed = is_dismissed();
  }
  return attempt.admitted || !attempt.failure.empty();
}

bool SshSession::log_in_with_agent(const Credentials& credentials, LoginAttempt& attempt,
                                   Deadline deadline) {
  KeyChoice choice{{}, credentials.only_files};
  for (const std::string& file : credentials.files)
    if (auto key = public_key_of(file); !key.empty()) choice.preferred.push_back(std::move(key));
  auto agent = connect_key_agent(credentials.agent_socket, std::move(choice));
  if (!agent) return false;
  ssh_set_agent_socket(session_, agent->release());
  attempt.tried.push_back("the ssh agent");
  return note(
      finish(SSH_AUTH_AGAIN, deadline, [&] { return ssh_userauth_agent(session_, nullptr); }),
      attempt);
}

bool SshSession::log_in_with_file(const std::string& file, LoginAttempt& attempt,
                                  Deadline deadline) {
  ssh_key key = nullptr;
  bool locked = false;
  if (::access(file.c_str(), R_OK) != 0) return false;
  const std::string certificate = file + "-cert.pub";
  if (::access(certificate.c_str(), R_OK) == 0) attempt.certificates.push_back(certificate);
  if (ssh_pki_import_privkey_file(file.c_str(), nullptr, refuse_passphrase, &locked, &key) !=
      SSH_OK) {
    if (locked) attempt.locked.push_back(file);
    return false;
  }
  attempt.tried.push_back(file);
  const int code = finish(SSH_AUTH_AGAIN, deadline,
                          [&] { return ssh_userauth_publickey(session_, nullptr, key); });
  ssh_key_free(key);
  return note(code, attempt);
}

LoginAttempt SshSession::log_in(const Credentials& credentials, Deadline deadline) {
  LoginAttempt attempt;
  if (!credentials.agent_socket.empty() && log_in_with_agent(credentials, attempt, deadline))
    return attempt;
  for (const std::string& file : credentials.files)
    if (log_in_with_file(file, attempt, deadline)) return attempt;
  // To learn what would do.
  if (note(finish(SSH_AUTH_AGAIN, deadline, [&] { return ssh_userauth_none(session_, nullptr); }),
           attempt))
    return attempt;
  attempt.ways = names_of(ssh_userauth_list(session_, nullptr));
  if (!credentials.agent_socket.empty())
    for (const std::string& comment : certificates_of_agent(credentials.agent_socket, deadline))
      attempt.certificates.push_back(fmt::format("the ssh agent's certificate '{}'", comment));
  return attempt;
}

Result<std::unique_ptr<Wire>> SshSession::run(const std::string& command, Deadline deadline) {
  ssh_channel channel = ssh_channel_new(session_);
  auto wire = std::make_unique<SshWire>(*this, channel);
  int code = finish(SSH_AGAIN, deadline, [&] { return ssh_channel_open_session(channel); });
  if (code == SSH_OK)
    code = finish(SSH_AGAIN, deadline,
                  [&] { return ssh_channel_request_exec(channel, command.c_str()); });
  if (code != SSH_OK) return not_opened();
  return std::unique_ptr<Wire>(std::move(wire));
}

Result<std::unique_ptr<Wire>> SshSession::forward(const std::string& host, int port,
                                                  Deadline deadline) {
  ssh_channel channel = ssh_channel_new(session_);
  auto wire = std::make_unique<SshWire>(*this, channel);
  const int code = finish(SSH_AGAIN, deadline, [&] {
    return ssh_channel_open_forward(channel, host.c_str(), port, "localhost", 0);
  });
  if (code != SSH_OK) return not_opened();
  return std::unique_ptr<Wire>(std::move(wire));
}

}  // namespace corro::launcher
