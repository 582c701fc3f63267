/* Collectives between the workers of a job.  The C interface of libkolo.so.

   Conventions, said once:

   1. A context is one worker's membership in its job.  There is no state outside of contexts.
   2. Every call that can fail returns a kolo_status and takes a `kolo_error** why` as its last
      argument.  `why` may be NULL.  If it is not, *why is NULL after KOLO_OK and otherwise an
      error that the caller frees (NULL only if there was no memory for it).  Nothing here ends
      the process, throws, prints, or raises a signal.
   3. Option structs begin with their own size, so that an older program meets a newer library.
      A member that is zero, or that the caller's header did not have yet, means the default.
   4. A collective is called by every rank of the job, in the same order and with the same count,
      type and reduction or root.  It waits until this rank's part is done.  Ranks that do not
      call the same learn so by KOLO_INVALID on all of them.
   5. Any thread may make any call; calls on one context take turns.  kolo_close is the last.
   6. After a failed collective the context is of no further use but to be closed: the contents of
      the buffer are undefined, and every later collective fails at once with the same error.
      KOLO_INVALID for an argument that this rank alone can judge (NULL, an unknown type, an odd
      address) comes before anything is sent and leaves the context as it was.
   7. A forked child has its parent's contexts only to close them: nobody is told, and any
      collective is KOLO_INVALID. */
#ifndef KOLO_KOLO_H
#define KOLO_KOLO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KOLO_API __attribute__((visibility("default")))

typedef enum kolo_status {
  KOLO_OK = 0,
  KOLO_INVALID = 1, /* an argument, the environment, or ranks that do not call the same */
  KOLO_TIMED_OUT = 2,
  KOLO_PEER_LOST = 3,     /* another worker is gone; kolo_error_rank says which */
  KOLO_LAUNCHER_LOST = 4, /* the launcher, and with it the job's store, is gone */
  KOLO_REFUSED = 5,       /* whoever answered does not know this job's key */
  KOLO_NO_MEMORY = 6,
  KOLO_SYSTEM = 7 /* the system said no, or bytes that are not ours came in */
} kolo_status;

/* Numbers and not enumerations, so that whatever a caller passes can be judged. */
typedef int32_t kolo_type;
enum { KOLO_FLOAT32 = 0, KOLO_FLOAT64 = 1 };

typedef int32_t kolo_reduction;
enum {
  KOLO_SUM = 0,
  KOLO_AVERAGE = 1, /* the sum, divided once by the number of ranks */
  KOLO_MIN = 2,
  KOLO_MAX = 3
};

typedef struct kolo_context kolo_context;
typedef struct kolo_error kolo_error;

typedef struct kolo_options {
  size_t size;        /* sizeof(kolo_options) */
  int64_t timeout_ms; /* of each collective; 0: KOLO_TIMEOUT_SECONDS, and without it 300 s */
} kolo_options;

/* Joins the job that the environment describes, and waits until the neighbours have done so too
   (HOROVOD_START_TIMEOUT seconds at most, by default 30).  In a process that no launcher started
   this is rank 0 of 1, and every collective works.  `options` may be NULL. */
KOLO_API kolo_status kolo_open(const kolo_options* options, kolo_context** context,
                               kolo_error** why);

/* NULL is fine. */
KOLO_API void kolo_close(kolo_context* context);

/* The place in the job; -1 for a NULL context.  "local" counts the workers of one host, "cross"
   those of all hosts that have the same local rank. */
KOLO_API int kolo_rank(const kolo_context* context);
KOLO_API int kolo_size(const kolo_context* context);
KOLO_API int kolo_local_rank(const kolo_context* context);
KOLO_API int kolo_local_size(const kolo_context* context);
KOLO_API int kolo_cross_rank(const kolo_context* context);
KOLO_API int kolo_cross_size(const kolo_context* context);

/* Replaces each of the `count` elements by the reduction of all ranks' elements there, with the
   same bits on every rank.  `data` is aligned for its type and may be NULL if count is 0. */
KOLO_API kolo_status kolo_allreduce(kolo_context* context, void* data, size_t count, kolo_type type,
                                    kolo_reduction reduction, kolo_error** why);

/* Replaces the elements of every other rank by those of `root`. */
KOLO_API kolo_status kolo_broadcast(kolo_context* context, void* data, size_t count, kolo_type type,
                                    int root, kolo_error** why);

/* Returns when every rank has called it. */
KOLO_API kolo_status kolo_barrier(kolo_context* context, kolo_error** why);

/* A sentence that says who, where and why; lives as long as the error.  "" for NULL. */
KOLO_API const char* kolo_error_text(const kolo_error* error);
KOLO_API kolo_status kolo_error_status(const kolo_error* error);

/* The rank to blame, or -1 if there is none in particular. */
KOLO_API int kolo_error_rank(const kolo_error* error);

/* NULL is fine. */
KOLO_API void kolo_error_free(kolo_error* error);

/* "0.1.0" */
KOLO_API const char* kolo_version(void);

#ifdef __cplusplus
}
#endif

#endif /* KOLO_KOLO_H */
