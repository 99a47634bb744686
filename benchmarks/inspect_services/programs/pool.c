/* A pool of threads: pool MODE THREADS COUNTS
 *
 *   spin    threads work, then spin at a barrier until the last one has arrived
 *   wait    threads work, then sleep at the barrier
 *   serial  one thread works, the others sleep
 *   sleep   every thread sleeps; a quarter of them wakes up each 100 ms
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const char *mode;
static int threads;
static volatile uint64_t *count;
static atomic_int arrived;
static atomic_long generation;
static pthread_barrier_t barrier;

static void work(long rounds) {
    volatile double x = 1;
    for (long i = 0; i < rounds; i++) x = x * 1.0000001 + 1e-9;
}

static void pause_ms(long ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static void spin_barrier(void) {
    long now = atomic_load(&generation);
    if (atomic_fetch_add(&arrived, 1) == threads - 1) {
        atomic_store(&arrived, 0);
        atomic_fetch_add(&generation, 1);
    } else {
        while (atomic_load(&generation) == now) {}
    }
}

static void *run(void *argument) {
    long me = (long)argument;
    char name[16];
    snprintf(name, sizeof name, "pool-%ld", me);
    pthread_setname_np(pthread_self(), name);
    for (;;) {
        if (!strcmp(mode, "spin")) {
            work(800000 / threads);
            spin_barrier();
        } else if (!strcmp(mode, "wait")) {
            work(800000 / threads);
            pthread_barrier_wait(&barrier);
        } else if (!strcmp(mode, "serial")) {
            if (me) pause_ms(3600000); else work(400000);
        } else {
            pause_ms(me % 4 ? 3600000 : 100);
        }
        if (!me) ++*count;
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    mode = argv[1];
    threads = atoi(argv[2]);
    char path[4096];
    snprintf(path, sizeof path, "%s/%d.count", argv[3], getpid());
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (file < 0 || ftruncate(file, 8)) return 1;
    count = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    pthread_barrier_init(&barrier, NULL, threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (long i = 1; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, run, (void *)i)) return 1;
    }
    run((void *)0);
}
