// SPDX-License-Identifier: GPL-2.0
/*
 * What the static 32-bit C library takes from the compiler's own library, which
 * is not there in 32 bits unless one installs all of a second compiler. It is for
 * exceptions, cancelled threads and 128-bit floating point: no test has any.
 */
#include <stdlib.h>

#define NEVER_CALLED(name)     \
	void name(void);       \
	void name(void)        \
	{                      \
		abort();       \
	}

NEVER_CALLED(_Unwind_ForcedUnwind)
NEVER_CALLED(_Unwind_GetCFA)
NEVER_CALLED(_Unwind_Resume)
NEVER_CALLED(__gcc_personality_v0)
NEVER_CALLED(__letf2)
NEVER_CALLED(__unordtf2)
