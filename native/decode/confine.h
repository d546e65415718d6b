#ifndef SVC_CONFINE_H
#define SVC_CONFINE_H

#include <stdbool.h>

// Gives up all that the program does not need: from then on it may read its input, write its output, measure its time and
// end. False: the kernel refuses what must not be missing.
bool confine(void);

#endif
