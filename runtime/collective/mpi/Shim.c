/* The table of one MPI, compiled against its headers. */
#include "Shim.h"

#include <limits.h>
#include <mpi.h>

static MPI_Comm groups[titan_mpi_groups];
static MPI_Request under_way = MPI_REQUEST_NULL;

static int init(void) {
  int provided = MPI_THREAD_SINGLE;
  int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
  if (code != MPI_SUCCESS)
    return code;
  if (provided < MPI_THREAD_FUNNELED)
    return MPI_ERR_OTHER;
  code = MPI_Comm_dup(MPI_COMM_WORLD, &groups[0]); /* inherits how errors are handled */
  return code != MPI_SUCCESS ? code : MPI_Comm_set_errhandler(groups[0], MPI_ERRORS_RETURN);
}

static int size(void) {
  int number = 0;
  MPI_Comm_size(groups[0], &number);
  return number;
}

static int rank(void) {
  int number = 0;
  MPI_Comm_rank(groups[0], &number);
  return number;
}

static int split(int group, int color, int key) {
  return MPI_Comm_split(groups[0], color, key, &groups[group]);
}

static int all_to_all(int group, const void* in, void* out, size_t bytes) {
  if (bytes > INT_MAX)
    return MPI_ERR_COUNT;
  return MPI_Ialltoall(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, groups[group],
                       &under_way);
}

static int all_gather(int group, const void* in, void* out, size_t bytes) {
  if (bytes > INT_MAX)
    return MPI_ERR_COUNT;
  return MPI_Iallgather(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, groups[group],
                        &under_way);
}

static int broadcast(int group, int root, void* data, size_t bytes) {
  if (bytes > INT_MAX)
    return MPI_ERR_COUNT;
  return MPI_Ibcast(data, (int)bytes, MPI_BYTE, root, groups[group], &under_way);
}

static int test(int* is_done) { return MPI_Test(&under_way, is_done, MPI_STATUS_IGNORE); }

static int finalize(void) { return MPI_Finalize(); }

static void describe(int code, char text[titan_mpi_text_bytes]) {
  int length = 0;
  _Static_assert(MPI_MAX_ERROR_STRING <= titan_mpi_text_bytes, "an error text fits");
  text[0] = '\0';
  MPI_Error_string(code, text, &length);
}

__attribute__((visibility("default"))) const struct titan_mpi_shim* titan_mpi_shim_1(void) {
  static const struct titan_mpi_shim shim = {init,      size, rank,     split,   all_to_all,
                                             all_gather, broadcast, test, finalize, describe};
  return &shim;
}
