/* A disk that loses what was not synced, to be preloaded into a PostgreSQL server.

   Before each write to a file below POWER_DATA, what stood there is noted in POWER_UNDO/<inode>; a sync of the file
   forgets the notes. After the processes were killed, applying the notes backwards gives the files as the last syncs
   left them: see power.py. Creating, renaming, removing, truncating and preallocating files is not taken back. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

struct note {
    long long offset, length, size; /* where, how much stood there, and how long the file was */
};

/* The notes of an open file, locked; -1 where it is none of the database's. */
static int notes(int fd, int create)
{
    const char *data = getenv("POWER_DATA"), *undo = getenv("POWER_UNDO");
    char link[64], path[4096], name[4200];
    struct stat st;
    ssize_t n;
    int f;

    if (!data || !undo || fstat(fd, &st) || !S_ISREG(st.st_mode))
        return -1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if ((n = readlink(link, path, sizeof path - 1)) < 0)
        return -1;
    path[n] = 0;
    if (strncmp(path, data, strlen(data)) || strstr(path, "/postmaster.") || strstr(path, "/pgsql_tmp"))
        return -1;
    snprintf(name, sizeof name, "%s/%llu", undo, (unsigned long long)st.st_ino);
    f = open(name, O_WRONLY | O_APPEND | O_CLOEXEC | (create ? O_CREAT : 0), 0600);
    if (f >= 0)
        flock(f, LOCK_EX);
    return f;
}

static int noted(int fd, off_t offset, size_t length)
{
    char link[64], *kept;
    struct note note = {offset, 0, 0};
    struct stat st;
    int f = notes(fd, 1), source;

    if (f < 0)
        return -1;
    fstat(fd, &st);
    note.size = st.st_size;
    kept = malloc(sizeof note + length);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if ((source = open(link, O_RDONLY | O_CLOEXEC)) >= 0) {
        ssize_t n = pread(source, kept + sizeof note, length, offset);
        note.length = n > 0 ? n : 0;
        close(source);
    }
    memcpy(kept, &note, sizeof note);
    /* One call: a process that is stopped has noted all or nothing. */
    if (REAL(write)(f, kept, sizeof note + note.length) < 0)
        abort();
    free(kept);
    return f;
}

static void done(int f)
{
    if (f >= 0)
        close(f);
}

static void forget(const char *path)
{
    const char *undo = getenv("POWER_UNDO");
    char name[4200];
    struct stat st;

    if (undo && !lstat(path, &st) && S_ISREG(st.st_mode)) {
        snprintf(name, sizeof name, "%s/%llu", undo, (unsigned long long)st.st_ino);
        if (truncate(name, 0)) { /* there were none */
        }
    }
}

static int synced(int fd)
{
    int f = notes(fd, 0);
    if (f >= 0 && ftruncate(f, 0))
        abort();
    done(f);
    return 0;
}

int fsync(int fd) { return synced(fd); }
int fdatasync(int fd) { return synced(fd); }

ssize_t pwrite(int fd, const void *buffer, size_t n, off_t offset)
{
    int f = noted(fd, offset, n);
    ssize_t written = REAL(pwrite)(fd, buffer, n, offset);
    done(f);
    return written;
}
ssize_t pwrite64(int fd, const void *buffer, size_t n, off64_t offset) { return pwrite(fd, buffer, n, offset); }

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    size_t n = 0;
    for (int i = 0; i < count; i++)
        n += parts[i].iov_len;
    int f = noted(fd, offset, n);
    ssize_t written = REAL(pwritev)(fd, parts, count, offset);
    done(f);
    return written;
}
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset)
{
    return pwritev(fd, parts, count, offset);
}

ssize_t write(int fd, const void *buffer, size_t n)
{
    off_t offset = lseek(fd, 0, SEEK_CUR);
    int f = offset < 0 ? -1 : noted(fd, offset, n);
    ssize_t written = REAL(write)(fd, buffer, n);
    done(f);
    return written;
}

int unlink(const char *path)
{
    forget(path);
    return REAL(unlink)(path);
}

int rename(const char *from, const char *to)
{
    forget(to);
    return REAL(rename)(from, to);
}
