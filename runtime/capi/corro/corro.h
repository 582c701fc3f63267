/* Collectives between the workers of a job.  The C interface of libcorro.so.

   Conventions, said once:

   1. A context is one worker's membership in its job.  There is no state outside of contexts.
   2. Every call that can fail returns a corro_status and takes a `corro_error** why` as its last
      argument.  `why` may be NULL.  If it is not, *why is NULL after CORRO_OK and otherwise an
      error that the caller frees (NULL only if there was no memory for it).  Nothing here ends
      the process, throws, prints, or raises a signal.
   3. Option structs begin with their own size, so that an older program meets a newer library.
      A member that is zero, or that the caller's header did not have yet, means the default.
   4. A collective is called by every rank of its group, in the same order and with the same count,
      type and reduction or root.  It waits until this rank's part is done.  Ranks that do not
      call the same learn so by CORRO_INVALID on all of them.
   5. Any thread may make any call; calls on one group take turns, calls on different groups run
      beside each other.  corro_close is the last.
   6. After a failed collective its group is of no further use: the contents of the buffers are
      undefined, and every later collective of it fails at once with the same error.
      CORRO_INVALID for an argument that this rank alone can judge (NULL, an unknown type, a
      buffer of the wrong size) comes before anything is sent and leaves the group as it was.
   7. A forked child has its parent's contexts only to close them: nobody is told, and any
      collective is CORRO_INVALID. */
#ifndef CORRO_CORRO_H
#define CORRO_CORRO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CORRO_API __attribute__((visibility("default")))

typedef enum corro_status {
  CORRO_OK = 0,
  CORRO_INVALID = 1, /* an argument, the environment, or ranks that do not call the same */
  CORRO_TIMED_OUT = 2,
  CORRO_PEER_LOST = 3,     /* another worker is gone; corro_error_rank says which */
  CORRO_LAUNCHER_LOST = 4, /* the launcher, and with it the job's store, is gone */
  CORRO_REFUSED = 5,       /* whoever answered does not know this job's key */
  CORRO_NO_MEMORY = 6,
  CORRO_SYSTEM = 7 /* the system said no, or bytes that are not ours came in */
} corro_status;

/* Numbers and not enumerations, so that whatever a caller passes can be judged. */
typedef int32_t corro_type;
enum {
  CORRO_FLOAT32 = 0,
  CORRO_FLOAT64 = 1,
  CORRO_UINT8 = 2,
  CORRO_INT8 = 3,
  CORRO_UINT16 = 4,
  CORRO_INT16 = 5,
  CORRO_UINT32 = 6,
  CORRO_INT32 = 7,
  CORRO_UINT64 = 8,
  CORRO_INT64 = 9,
  CORRO_FLOAT16 = 10, /* computed in float32, as is the next */
  CORRO_BFLOAT16 = 11,
  CORRO_BOOL = 12 /* one byte: 0 or not; results are 0 or 1 */
};

typedef int32_t corro_reduction;
enum {
  CORRO_SUM = 0,
  CORRO_AVERAGE = 1, /* the sum, divided once by the number of ranks; integers toward zero */
  CORRO_MIN = 2,
  CORRO_MAX = 3,
  CORRO_PRODUCT = 4,
  CORRO_BIT_AND = 5, /* of integers and bool */
  CORRO_BIT_OR = 6,
  CORRO_ADASUM = 7 /* of floating-point types, allreduce only */
};
/* On bool, sum is or, product is and, average is refused. */

typedef int32_t corro_kind;
enum {
  CORRO_ALLREDUCE = 0,
  CORRO_ALLGATHER = 1,
  CORRO_BROADCAST = 2,
  CORRO_ALLTOALL = 3,
  CORRO_REDUCESCATTER = 4,
  CORRO_BARRIER = 5
};

typedef struct corro_context corro_context;
typedef struct corro_error corro_error;

typedef struct corro_options {
  size_t size;        /* sizeof(corro_options) */
  int64_t timeout_ms; /* of each collective; 0: CORRO_TIMEOUT_SECONDS, and without it 300 s */
} corro_options;

/* Joins the job that the environment describes, and waits until the neighbours have done so too
   (HOROVOD_START_TIMEOUT seconds at most, by default 30).  In a process that no launcher started
   this is rank 0 of 1, and every collective works.  `options` may be NULL. */
CORRO_API corro_status corro_open(const corro_options* options, corro_context** context,
                                  corro_error** why);

/* NULL is fine. */
CORRO_API void corro_close(corro_context* context);

/* The place in the job; -1 for a NULL context.  "local" counts the workers of one host, "cross"
   those of all hosts that have the same local rank. */
CORRO_API int corro_rank(const corro_context* context);
CORRO_API int corro_size(const corro_context* context);
CORRO_API int corro_local_rank(const corro_context* context);
CORRO_API int corro_local_size(const corro_context* context);
CORRO_API int corro_cross_rank(const corro_context* context);
CORRO_API int corro_cross_size(const corro_context* context);

/* Replaces each of the `count` elements by the reduction of all ranks' elements there, with the
   same bits on every rank.  `data` may be NULL if count is 0. */
CORRO_API corro_status corro_allreduce(corro_context* context, void* data, size_t count,
                                       corro_type type, corro_reduction reduction,
                                       corro_error** why);

/* Replaces the elements of every other rank by those of `root`. */
CORRO_API corro_status corro_broadcast(corro_context* context, void* data, size_t count,
                                       corro_type type, int root, corro_error** why);

/* Returns when every rank has called it. */
CORRO_API corro_status corro_barrier(corro_context* context, corro_error** why);

/* Memory for tensors that the other workers of this machine see too: an allreduce of tensors that
   all come from here copies nothing.  Zeroed when first used; aligned to 64 bytes at least, from
   2 MB on to 2 MB.  A forked child does not have it.  It stays valid after corro_close; before
   that it can be given back.  NULL if there is no more.  Where workers cannot share memory this is
   ordinary memory. */
CORRO_API void* corro_alloc(corro_context* context, size_t bytes);
CORRO_API void corro_free(corro_context* context, void* memory);

/* Some ranks of the job, by a number in this context. */
typedef uint64_t corro_group;
enum { CORRO_WORLD = 0 }; /* all ranks */

/* Opens a group of `n` different ranks, in this order; the caller is one of them.  All of them
   call this, in the same order as their other calls, and it waits until its neighbours in the
   group have (HOROVOD_START_TIMEOUT).  Meanwhile no collective of this context makes progress. */
CORRO_API corro_status corro_group_open(corro_context* context, const int32_t* ranks, size_t n,
                                        corro_group* group, corro_error** why);
CORRO_API void corro_group_close(corro_context* context, corro_group group);

/* The place in a group; -1 for a group that is not there. */
CORRO_API int corro_group_rank(const corro_context* context, corro_group group);
CORRO_API int corro_group_size(const corro_context* context, corro_group group);

/* A part of a buffer: whole elements.  Several of them, one after the other, are one tensor, so
   that fused tensors need not be copied together. */
typedef struct corro_piece {
  void* data;
  size_t bytes;
} corro_piece;

/* Any collective.  Ranks are those of the group; "parts" has one number for each of them.

     kind            in                        out                     also
     allreduce       count elements            count elements          reduction, scales
     broadcast       count, of the root only   count elements          root
     allgather       parts[own]                sum of parts            parts
     reducescatter   sum of parts              parts[own]              parts, reduction, scales
     alltoall        sum of sends              sum of receives         sends, receives
     barrier         -                         -

   Without pieces in `in` an allreduce or broadcast works in place, and an allgather finds the
   rank's own part in its place in `out`. */
typedef struct corro_op {
  size_t size; /* sizeof(corro_op) */
  corro_kind kind;
  corro_type type;
  corro_reduction reduction;
  int32_t root;
  size_t count;
  const size_t* parts;
  const size_t* sends;
  const size_t* receives;
  double prescale, postscale; /* of what goes in and of the result; 0 means 1 */
  const corro_piece* in;
  size_t in_pieces;
  const corro_piece* out;
  size_t out_pieces;
} corro_op;

CORRO_API corro_status corro_run(corro_context* context, corro_group group, const corro_op* op,
                                 corro_error** why);

/* A sentence that says who, where and why; lives as long as the error.  "" for NULL. */
CORRO_API const char* corro_error_text(const corro_error* error);
CORRO_API corro_status corro_error_status(const corro_error* error);

/* The rank to blame, or -1 if there is none in particular. */
CORRO_API int corro_error_rank(const corro_error* error);

/* NULL is fine. */
CORRO_API void corro_error_free(corro_error* error);

/* "0.1.0" */
CORRO_API const char* corro_version(void);

#ifdef __cplusplus
}
#endif

#endif /* CORRO_CORRO_H */
