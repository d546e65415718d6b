#ifndef SVC_CONFINE_H
#define SVC_CONFINE_H

#include <stdbool.h>

// Drops all privileges that the program does not need: from then on it may only read its input, write its output,
// measure its time and exit. False: the kernel rejected a mandatory measure.
bool confine(void);

#endif
