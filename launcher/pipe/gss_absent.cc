// Debian's libssh.a was built with Kerberos, of which there is no static library.  These answer in
// its place that it is not available; who needs it uses `--rsh-agent ssh`.
namespace {

constexpr unsigned kUnavailable = 16u << 16;  // GSS_S_UNAVAILABLE, RFC 2744

unsigned unavailable(unsigned* minor) {
  if (minor) *minor = 0;
  return kUnavailable;
}

}  // namespace

// Their other arguments are for nobody; the C calling convention lets a function leave them.
extern "C" {

void *GSS_C_NT_HOSTBASED_SERVICE = nullptr, *GSS_C_NT_USER_NAME = nullptr;

unsigned gss_accept_sec_context(unsigned* minor) {
  return unavailable(minor);
}
unsigned gss_acquire_cred(unsigned* minor) {
  return unavailable(minor);
}
unsigned gss_add_oid_set_member(unsigned* minor) {
  return unavailable(minor);
}
unsigned gss_create_empty_oid_set(unsigned* minor) {
  return unavailable(minor);
}
unsigned gss_display_name(unsigned* minor) {
  return unavailable(minor);
}
unsigned gss_display_status(unsigned* minor) {
  return unavailable(minor);
}
unsigned gss_get_mic(unsigned* minor) {
  return unavailable(minor);
}
unsigned gss_import_name(unsigned* minor) {
  return unavailable(minor);
}
unsigned gss_indicate_mechs(unsigned* minor) {
  return unavailable(minor);
}
unsigned gss_init_sec_context(unsigned* minor) {
  return unavailable(minor);
}
unsigned gss_inquire_cred(unsigned* minor) {
  return unavailable(minor);
}
unsigned gss_inquire_cred_by_mech(unsigned* minor) {
  return unavailable(minor);
}
unsigned gss_release_buffer(unsigned* minor) {
  return unavailable(minor);
}
unsigned gss_release_cred(unsigned* minor) {
  return unavailable(minor);
}
unsigned gss_release_name(unsigned* minor) {
  return unavailable(minor);
}
unsigned gss_release_oid_set(unsigned* minor) {
  return unavailable(minor);
}
unsigned gss_test_oid_set_member(unsigned* minor) {
  return unavailable(minor);
}
unsigned gss_verify_mic(unsigned* minor) {
  return unavailable(minor);
}
}
