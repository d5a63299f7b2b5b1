/*
 * A full disk, for tests: preloaded into a process, it lets no file of a folder grow while another file exists. What was
 * written before can be written over, files can be made and cut, as on a disk without a free block. What fails is done
 * by half. It is C because it has to stand in for functions of the C library.
 *
 *   FULL_DIR    the folder
 *   FULL_WHILE  the file
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_ftruncate)(int, off_t);

__attribute__((constructor)) static void start(void) {
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate");
}

/* Whether a file would have to grow to end there, and may not. */
static int is_full(int fd, off_t end) {
    const char *dir = getenv("FULL_DIR"), *full = getenv("FULL_WHILE");
    if (!dir || !full || fd < 0 || access(full, F_OK))
        return 0;
    char link[64], path[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    struct stat stat;
    if (strncmp(path, dir, strlen(dir)) || fstat(fd, &stat) || !S_ISREG(stat.st_mode))
        return 0;
    /* SQLite cuts this one at each start: it grows again into the blocks that it has given back */
    if (length > 4 && !strcmp(path + length - 4, "-shm"))
        return 0;
    return end > stat.st_size;
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
    if (!is_full(fd, offset + (off_t)length))
        return real_pwrite(fd, bytes, length, offset);
    real_pwrite(fd, bytes, length / 2, offset);
    errno = ENOSPC;
    return -1;
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset) {
    return pwrite(fd, bytes, length, offset);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    off_t at = lseek(fd, 0, SEEK_CUR);
    if (at < 0 || !is_full(fd, at + (off_t)length))
        return real_write(fd, bytes, length);
    real_write(fd, bytes, length / 2);
    errno = ENOSPC;
    return -1;
}

int ftruncate(int fd, off_t size) {
    if (!is_full(fd, size))
        return real_ftruncate(fd, size);
    errno = ENOSPC;
    return -1;
}

int ftruncate64(int fd, off_t size) {
    return ftruncate(fd, size);
}
