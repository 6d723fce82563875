/* Questions about one job. */
#ifndef LATER_WEB_ABOUT_JOBS_H
#define LATER_WEB_ABOUT_JOBS_H

#include "web/call.h"

extern const struct route job_routes[]; /* ended by a NULL pattern */

#endif
