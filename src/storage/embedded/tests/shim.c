/*
 * Stands between a store and its disk, for tests: preloaded into a process, it counts the writes and syncs of the
 * store's files, makes them fail, keeps the files within a size, or ends the process as a power failure would, with
 * what was not synced dropped or torn. It is C because it has to stand in for functions of the C library.
 *
 *   SHIM_DIR    the store's folder
 *   SHIM_FAIL   "KIND N ERRNO HOW": the Nth write or sync fails; HOW is once, or on: all after it too
 *   SHIM_CRASH  "N SEED": power fails before the Nth write or sync
 *   SHIM_QUOTA  bytes that the files may have together; what is beyond fails as on a full disk
 *   SHIM_LIE    if set, syncs do nothing, and say that they did
 *   SHIM_HEAL   a file: while it exists, nothing fails any more
 *   SHIM_COUNT  a file: gets the numbers of writes and of syncs when the process ends
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECTOR = 512, CRASHED = 99 };
enum kind { WRITE, SYNC };

/* What the disk holds of a sector that was written since: after a failed sync the system forgets that it is dirty. */
struct sector {
    char path[256];
    off_t index;
    ssize_t length; /* bytes of it within the file on disk */
    char before[SECTOR];
    int lost;
    int cut; /* the file was cut before it */
    struct sector *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sector *dirty;
static long counts[2];

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_ftruncate)(int, off_t);

__attribute__((constructor)) static void start(void) {
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate");
}

__attribute__((destructor)) static void finish(void) {
    const char *path = getenv("SHIM_COUNT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) {
        fprintf(file, "%ld %ld", counts[WRITE], counts[SYNC]);
        fclose(file);
    }
}

/* Whether a descriptor is one of the store's files, and which. */
static int ours(int fd, char *path, size_t size) {
    const char *dir = getenv("SHIM_DIR");
    if (!dir || fd < 0)
        return 0;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, size - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    size_t prefix = strlen(dir);
    if (strncmp(path, dir, prefix))
        return 0;
    const char *rest = path + prefix;
    if (getenv("SHIM_QUOTA") && !strcmp(rest, "/reserve"))
        return 1;
    return !*rest || !strcmp(rest, "/store.db") || !strcmp(rest, "/store.db-wal");
}

static int healed(void) {
    const char *heal = getenv("SHIM_HEAL");
    return heal && access(heal, F_OK) == 0;
}

static struct sector *find(const char *path, off_t index) {
    for (struct sector *at = dirty; at; at = at->next)
        if (at->index == index && !strcmp(at->path, path))
            return at;
    return NULL;
}

/* Notes what the disk holds where something is about to change. */
static void remember(const char *path, off_t from, off_t to, int cut) {
    if (getenv("SHIM_QUOTA"))
        return; /* power does not fail on small disks */
    int fd = open(path, O_RDONLY);
    for (off_t index = from / SECTOR; fd >= 0 && index * SECTOR < to; index++) {
        struct sector *known = find(path, index);
        if (known) {
            known->lost = 0;
            known->cut |= cut;
            continue;
        }
        struct sector *sector = calloc(1, sizeof *sector);
        snprintf(sector->path, sizeof sector->path, "%s", path);
        sector->index = index;
        sector->cut = cut;
        sector->length = pread(fd, sector->before, SECTOR, index * SECTOR);
        sector->next = dirty;
        dirty = sector;
    }
    if (fd >= 0)
        close(fd);
}

static void synced(const char *path, int failed) {
    for (struct sector **at = &dirty; *at;) {
        struct sector *sector = *at;
        if (strcmp(sector->path, path) || sector->lost) {
            at = &sector->next;
        } else if (failed) {
            sector->lost = 1;
        } else {
            *at = sector->next;
            free(sector);
        }
    }
}

/*
 * Sectors that were not synced are on disk or not, each by chance; a file may end where it ended on disk. A cut, being a
 * change of the file system's own records, is there as a whole or not at all.
 */
static void power_off(unsigned seed) {
    srandom(seed);
    int torn = random() % 3; /* all of it lost, some, or nearly none */
    int cut = random() % 2;
    for (struct sector *at = dirty; at; at = at->next) {
        int kept = torn == 0 ? 0 : torn == 1 ? random() % 2 : random() % 16 != 0;
        if (at->cut)
            kept = cut;
        if (kept && !at->lost)
            continue;
        int fd = open(at->path, O_WRONLY);
        if (fd < 0)
            continue;
        struct stat stat;
        off_t begin = at->index * SECTOR;
        if (at->length > 0)
            real_pwrite(fd, at->before, at->length, begin);
        if (fstat(fd, &stat) == 0 && at->length < SECTOR && begin + at->length < stat.st_size) {
            if (begin + SECTOR >= stat.st_size)
                real_ftruncate(fd, begin + at->length);
            else
                real_pwrite(fd, at->before + at->length, SECTOR - at->length, begin + at->length);
        }
        close(fd);
    }
    _exit(CRASHED);
}

/* Counts an operation; not 0: the error that it fails with. */
static int count(enum kind kind) {
    long n = ++counts[kind], crash, at;
    unsigned seed;
    char what[8], how[8];
    int error;
    const char *plan = getenv("SHIM_CRASH");
    if (plan && sscanf(plan, "%ld %u", &crash, &seed) == 2 && counts[WRITE] + counts[SYNC] >= crash)
        power_off(seed);
    plan = getenv("SHIM_FAIL");
    if (!plan || sscanf(plan, "%7s %ld %d %7s", what, &at, &error, how) != 4 || healed())
        return 0;
    if (kind != (strcmp(what, "sync") ? WRITE : SYNC))
        return 0;
    return n == at || (n > at && !strcmp(how, "on")) ? error : 0;
}

/* Whether a file that grows to this size leaves the files within their quota. */
static int fits(const char *path, off_t end) {
    const char *quota = getenv("SHIM_QUOTA");
    if (!quota || healed())
        return 1;
    long sum = 0;
    static const char *files[] = {"store.db", "store.db-wal", "reserve"};
    for (int i = 0; i < 3; i++) {
        char name[300];
        struct stat stat;
        snprintf(name, sizeof name, "%s/%s", getenv("SHIM_DIR"), files[i]);
        off_t size = lstat(name, &stat) == 0 ? stat.st_size : 0;
        if (!strcmp(name, path)) {
            if (end <= size)
                return 1;
            size = end;
        }
        sum += size;
    }
    return sum <= atol(quota);
}

static ssize_t put(int fd, const void *bytes, size_t length, off_t offset, const char *path) {
    pthread_mutex_lock(&lock);
    int error = count(WRITE);
    if (!error && !fits(path, offset + length))
        error = ENOSPC;
    remember(path, offset, offset + length, 0);
    /* what fails is done by half */
    ssize_t done = real_pwrite(fd, bytes, error ? length / 2 : length, offset);
    pthread_mutex_unlock(&lock);
    if (!error)
        return done;
    errno = error;
    return -1;
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
    char path[256];
    return ours(fd, path, sizeof path) ? put(fd, bytes, length, offset, path) : real_pwrite(fd, bytes, length, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset) {
    return pwrite(fd, bytes, length, offset);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    char path[256];
    if (!ours(fd, path, sizeof path))
        return real_write(fd, bytes, length);
    ssize_t done = put(fd, bytes, length, lseek(fd, 0, SEEK_CUR), path);
    if (done > 0)
        lseek(fd, done, SEEK_CUR);
    return done;
}

int ftruncate(int fd, off_t size) {
    char path[256];
    struct stat stat;
    if (!ours(fd, path, sizeof path))
        return real_ftruncate(fd, size);
    pthread_mutex_lock(&lock);
    int error = count(WRITE);
    if (!error && fstat(fd, &stat) == 0 && size < stat.st_size)
        remember(path, size, stat.st_size, 1);
    int done = error ? -1 : real_ftruncate(fd, size);
    pthread_mutex_unlock(&lock);
    if (error)
        errno = error;
    return done;
}

int ftruncate64(int fd, off_t size) {
    return ftruncate(fd, size);
}

static int sync_with(int (*real)(int), int fd) {
    char path[256];
    if (!ours(fd, path, sizeof path))
        return real(fd);
    /* as Linux has it: every descriptor of a file hears once of writes that were lost */
    static char failed[256];
    static int heard = -1;
    pthread_mutex_lock(&lock);
    int error = count(SYNC);
    if (error) {
        strcpy(failed, path);
        heard = fd;
    } else if (heard >= 0 && heard != fd && !strcmp(failed, path)) {
        error = EIO;
        heard = -1;
    }
    if (error || !getenv("SHIM_LIE"))
        synced(path, error);
    pthread_mutex_unlock(&lock);
    if (!error)
        return real(fd);
    errno = error;
    return -1;
}

int fsync(int fd) {
    return sync_with(real_fsync, fd);
}

int fdatasync(int fd) {
    return sync_with(real_fdatasync, fd);
}
