/* Threads that count under one lock, and threads that count in fields of one line. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct { _Alignas(64) pthread_mutex_t mutex; } lock = { PTHREAD_MUTEX_INITIALIZER };
static struct { _Alignas(64) long count; } under_lock;
static struct { _Alignas(64) long first; long second; } apart;

static void *in_turn(void *none) {
    for (int i = 0; i < 20000; i++) {
        pthread_mutex_lock(&lock.mutex);
        under_lock.count++;
        pthread_mutex_unlock(&lock.mutex);
    }
    return none;
}

static void *alone(void *field) {
    for (int i = 0; i < 60000; i++)
        *(volatile long *)field += 1; /* here */
    return field;
}

int main(int count, char **words) {
    int locks = count > 1 && strcmp(words[1], "lock") == 0;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, locks ? in_turn : alone, locks ? 0 : i ? &apart.second : &apart.first);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    printf("%ld %ld %ld\n", under_lock.count, apart.first, apart.second);
    return 0;
}
