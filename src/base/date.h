/* The calendar that gmtime and timegm do not tell. Pure. */
#ifndef LATER_BASE_DATE_H
#define LATER_BASE_DATE_H

/* month: 1 to 12. */
int date_days_in_month(int year, int month);

#endif
