/* A layer in front of the C library: lets chosen operations on the files of one directory fail, be short, or be late.
 *
 * It is loaded with LD_PRELOAD. The test maps the same control file (the type `Control` in layer.rs has the same fields). Operations
 * are counted while `kind` is not 0, from 1 on. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum kind { COUNT = 1, FAIL, SHORT, LATE };

enum operation { OPEN = 1, WRITE = 2, SYNC = 4, TRUNCATE = 8, RENAME = 16, UNLINK = 32, MKDIR = 64 };

struct control {
    _Atomic int64_t kind;
    _Atomic int64_t from;       /* first operation that is hit */
    _Atomic int64_t to;         /* last one */
    _Atomic int64_t value;      /* the error, or milliseconds */
    _Atomic int64_t operations; /* which operations count: bits of enum operation */
    _Atomic int64_t counted;
    _Atomic int64_t hit;
    _Atomic int64_t hit_operation;
    _Atomic int64_t sleeps;     /* calls of the C library's sleep by a thread of the name "kv-writer" */
    char part[64];              /* only paths that contain this count */
    char directory[256];
};

#define FILES 65536
static struct control *control;
static char *_Atomic paths[FILES];

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }
#define REAL(name) static typeof(name) *real; if (!real) real = next(#name)

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("KV_FAULTS");
    if (!file) return;
    int (*real_open)(const char *, int, ...) = next("open");
    int descriptor = real_open(file, O_RDWR);
    if (descriptor < 0) return;
    void *mapped = mmap(0, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (mapped != MAP_FAILED) control = mapped;
    close(descriptor);
}

/* Whether the operation fails with errno set. A late one waits here. A short one is told in is_short. */
static int faulty(enum operation operation, const char *path, int *is_short) {
    if (!control || !path) return 0;
    int64_t kind = control->kind;
    size_t length = strlen(control->directory);
    if (!kind || !(control->operations & operation) || strncmp(path, control->directory, length)) return 0;
    if (control->part[0] && !strstr(path, control->part)) return 0;
    int64_t number = atomic_fetch_add(&control->counted, 1) + 1;
    if (number < control->from || number > control->to || kind == COUNT) return 0;
    if (kind == SHORT && !is_short) return 0;
    atomic_fetch_add(&control->hit, 1);
    control->hit_operation = operation;
    if (kind == SHORT) {
        *is_short = 1;
        return 0;
    }
    if (kind == LATE) {
        int64_t milliseconds = control->value;
        struct timespec time = { milliseconds / 1000, milliseconds % 1000 * 1000000 };
        int (*real)(const struct timespec *, struct timespec *) = next("nanosleep");
        real(&time, 0);
        return 0;
    }
    errno = (int)control->value;
    return 1;
}

static const char *path_of(int descriptor) {
    return descriptor >= 0 && descriptor < FILES ? paths[descriptor] : 0;
}

static int opened(int descriptor, const char *path) {
    if (control && descriptor >= 0 && descriptor < FILES) {
        char *copy = strncmp(path, control->directory, strlen(control->directory)) ? 0 : strdup(path);
        /* The old name is not freed: another thread may read it. */
        paths[descriptor] = copy;
    }
    return descriptor;
}

#define OPEN_LIKE(name)                                                                                                          \
    int name(const char *path, int flags, ...) {                                                                               \
        REAL(name);                                                                                                              \
        va_list list;                                                                                                            \
        va_start(list, flags);                                                                                                   \
        mode_t mode = va_arg(list, mode_t);                                                                                      \
        va_end(list);                                                                                                            \
        if (faulty(OPEN, path, 0)) return -1;                                                                                    \
        return opened(real(path, flags, mode), path);                                                                          \
    }
OPEN_LIKE(open)
OPEN_LIKE(open64)

#define OPENAT_LIKE(name)                                                                                                        \
    int name(int at, const char *path, int flags, ...) {                                                                       \
        REAL(name);                                                                                                              \
        va_list list;                                                                                                            \
        va_start(list, flags);                                                                                                   \
        mode_t mode = va_arg(list, mode_t);                                                                                      \
        va_end(list);                                                                                                            \
        if (faulty(OPEN, path, 0)) return -1;                                                                                    \
        return opened(real(at, path, flags, mode), path);                                                                      \
    }
OPENAT_LIKE(openat)
OPENAT_LIKE(openat64)

int close(int descriptor) {
    REAL(close);
    if (descriptor >= 0 && descriptor < FILES) paths[descriptor] = 0;
    return real(descriptor);
}

static size_t written(size_t size, int is_short) { return is_short && size > 1 ? size / 2 : size; }

ssize_t write(int descriptor, const void *bytes, size_t size) {
    REAL(write);
    int is_short = 0;
    if (faulty(WRITE, path_of(descriptor), &is_short)) return -1;
    return real(descriptor, bytes, written(size, is_short));
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    REAL(writev);
    int is_short = 0;
    if (faulty(WRITE, path_of(descriptor), &is_short)) return -1;
    return real(descriptor, parts, is_short ? 1 : count);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t size, off64_t at) {
    REAL(pwrite64);
    int is_short = 0;
    if (faulty(WRITE, path_of(descriptor), &is_short)) return -1;
    return real(descriptor, bytes, written(size, is_short), at);
}

#define FILE_LIKE(name, operation)                                                                                               \
    int name(int descriptor) {                                                                                                 \
        REAL(name);                                                                                                              \
        return faulty(operation, path_of(descriptor), 0) ? -1 : real(descriptor);                                              \
    }
FILE_LIKE(fsync, SYNC)
FILE_LIKE(fdatasync, SYNC)

int ftruncate64(int descriptor, off64_t length) {
    REAL(ftruncate64);
    return faulty(TRUNCATE, path_of(descriptor), 0) ? -1 : real(descriptor, length);
}

int ftruncate(int descriptor, off_t length) {
    REAL(ftruncate);
    return faulty(TRUNCATE, path_of(descriptor), 0) ? -1 : real(descriptor, length);
}

int rename(const char *from, const char *to) {
    REAL(rename);
    return faulty(RENAME, to, 0) ? -1 : real(from, to);
}

int unlink(const char *path) {
    REAL(unlink);
    return faulty(UNLINK, path, 0) ? -1 : real(path);
}

int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    return faulty(MKDIR, path, 0) ? -1 : real(path, mode);
}

static void slept(void) {
    char name[16] = { 0 };
    if (control && !prctl(PR_GET_NAME, name) && !strcmp(name, "kv-writer")) atomic_fetch_add(&control->sleeps, 1);
}

int nanosleep(const struct timespec *time, struct timespec *rest) {
    REAL(nanosleep);
    slept();
    return real(time, rest);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *rest) {
    REAL(clock_nanosleep);
    slept();
    return real(clock, flags, time, rest);
}
