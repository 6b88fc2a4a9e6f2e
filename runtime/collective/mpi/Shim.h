/* What a job calls of an MPI, as a table of plain functions: a shim is built for each MPI where its
   headers are, since handles and constants differ between them.

   The thread that calls init() makes all other calls. One operation is under way at a time: it is
   begun by a call that returns at once, and done when test() says so; until then nobody touches its
   memory. Calls return 0 or an error code of that MPI, which describe() puts in words. */
#ifndef TITAN_MPI_SHIM_H
#define TITAN_MPI_SHIM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { titan_mpi_text_bytes = 512, titan_mpi_groups = 16 };

/* A group of ranks is a number below titan_mpi_groups; 0 is all of them, split() makes others. */
struct titan_mpi_shim {
  int (*init)(void);
  int (*size)(void);
  int (*rank)(void);
  /* The ranks that give the same color, by rising key. All ranks of group 0 call it. */
  int (*split)(int group, int color, int key);
  /* Part i of `in` goes to member i; part i of `out` comes from it. */
  int (*all_to_all)(int group, const void* in, void* out, size_t part_bytes);
  /* `in` goes to all; part i of `out` comes from member i. */
  int (*all_gather)(int group, const void* in, void* out, size_t part_bytes);
  int (*broadcast)(int group, int root, void* data, size_t bytes);
  int (*test)(int* is_done);
  int (*finalize)(void);
  void (*describe)(int code, char text[titan_mpi_text_bytes]);
};

/* The one symbol that a shim exports. Its number changes with the table. */
const struct titan_mpi_shim* titan_mpi_shim_1(void);

#ifdef __cplusplus
}
#endif

#endif
