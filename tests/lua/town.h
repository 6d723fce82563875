/*
 * A namespace in which every function of the library has much to do: the lines that build it, and
 * the calls that are made there. Each function is called at least once, and again for each of its
 * deep paths.
 *
 * What is in front of a `;` is carried out by the default user, before the call.
 *
 * A line is a function without its later_ and its arguments after R, split at single spaces. In a
 * word, `~` is a space, two quotes are the empty word, $x is a kept value. `a:1 ...` keeps element
 * 1 of the reply as $a. `.COMMAND ...` is a command of Redis, with R:x as the key x of the
 * namespace. `+1000` puts the clock 1000 ms forward. $big: more bytes than a record takes.
 */
#ifndef LATER_TESTS_LUA_TOWN_H
#define LATER_TESTS_LUA_TOWN_H

#include <stddef.h>
#include <string.h>

#define ROOM(queue) #queue " 100 1048576 "
#define TOWN_TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
#define SYNC(held, queues) "v1_sync $w 1 " #held " 100 0 " queues " 0"

static const char *const town[] = {
    "limit_set permits semaphore 1", "limit_set pair semaphore 2 on_lost kill",
    "limit_set shut semaphore 0", "limit_set gone semaphore 1", "limit_set k-{key} semaphore 1",
    "limit_set gcra rate 1/10s", "limit_set slide rate 1/1h algorithm sliding",
    "limit_set fixed rate 1/1h algorithm fixed", "limit_set open rate 100/1s burst 100",
    /* Two daemons, a program that holds a lock, and one that waits for it. */
    "w:1 v1_register 0 iw 1 0 5 host h1 queues "
    "mail,web,off,door,third,undef,many,rates,over,run,fence,permits,pair,key,gcra,slide,fixed,"
    "soon,"
    "late,set,out places 200 limits web=50,late=9 pid 7 0 0",
    "v1_tidy $w 2 mail 5000 web 5000 1 room 50",
    "v:1 v1_register 0 iv 1 0 3 host h2 queues far places 5 0 0",
    "p:1 v1_register 0 ip 1 0 2 places 0 queues '' 0 0", "v1_enter $p lock:prog",
    "q:1 v1_register 0 iq 1 0 2 places 0 queues '' 0 0", "v1_enter $q lock:prog wait",
    "i:1 v1_register 0 ii 1 0 2 places 0 queues '' 0 0",
    "v1_declare $w 1 own semaphore~3~keep 2 bad lock=bad turns fair=1", "add turns key a x",
    /* Gates that callers hold. */
    "F:1 lock door me ttl 1h", "lock third me ttl 1h", "lock far me ttl 1h", "lock deep me ttl 1h",
    "lock deep me ttl 1h", "lock others other ttl 1h", "lock undefined me ttl 1h",
    "lock many me ttl 1h", "lock rates me ttl 1h", "lock soon me ttl 1h", "lock set me ttl 1h",
    "lock late me ttl 1h", "lock out me ttl 1h", "lock over other ttl 5s",
    "sem_acquire permits me ttl 1h", "sem_acquire pair me ttl 1h", "sem_acquire pair gone ttl 5s",
    "throttle gcra", "throttle slide", "throttle fixed",
    /* Jobs that run: plain ones, with options, with a lock, of a worker that will be reaped. */
    "P:0 add mail plain", "O:0 add mail attempts 3 unique uo keep 1h x", "C:0 add mail lock run x",
    "K:0 add mail timeout 1m x", "D:0 add web attempts 1 unique ud keep 1h x",
    "E:0 add web keep 1h unique ue unique_for 2h x", "L:0 add far lock fence x",
    "G:0 add far unique ug x", "B:0 add mail $big",
    "v1_sync $w 1 0 100 0 2 mail 100 1048576 web 100 1048576 0",
    "v1_sync $v 1 0 100 0 1 far 100 1048576 0",
    "v1_sync $w 1 0 0 2 $D 1 dead web 100 7 T O $E 1 done web 3600000 0 T O 0 0", "cancel $K",
    /* Parked jobs: for gates of callers, gates of jobs, shut gates, gates that open by time. */
    "a:0 add door lock door unique ua x", "b:0 add door lock door keep 1h x", "add web lock door x",
    "add nobody lock far x", "add undef lock undefined sem gone x",
    "add many lock many sem permits rate slide x", "m:0 add many lock many x",
    "add rates lock rates rate open x", "add over lock over x", "add run lock run x",
    "c:0 add run lock run unique uc x", "add fence lock fence x",
    "s:0 add permits sem permits unique us x", "add web sem permits x", "add pair sem pair x",
    "add pair sem pair x", "add pair sem pair x", "add pair sem shut x",
    "add key key k1 sem k-{key} x", "k:0 add key key k1 sem k-{key} unique uk x",
    "r:0 add gcra rate gcra x", "add slide rate slide x", "add fixed rate fixed x", "add bad x",
    "add bad x",
    /* Jobs parked at a lock. Behind them are jobs that also need a semaphore that is not defined,
     * or a rate with starts later than the clock, as after it was set back. */
    "limit_set early rate 100/1s burst 100", "limit_set back rate 9/1h algorithm fixed",
    "limit_set log rate 9/1h algorithm sliding", "x:0 add set lock set unique ux x",
    "add set lock set sem gone x", "y:0 add late lock late unique uy x",
    "add late lock late rate early x", "z:0 add out lock out unique uz x",
    ".SET R:rate:gcra:early 1767229200000000~1000000", ".SET R:rate:fixed:back 491000~3",
    ".ZADD R:rate:sliding:log 1767229200000000 5",
    SYNC(5, "23 " ROOM(mail) ROOM(web) ROOM(nobody) ROOM(bad) ROOM(door) ROOM(third) ROOM(undef)
                ROOM(many) ROOM(rates) ROOM(over) ROOM(run) ROOM(fence) ROOM(permits) ROOM(pair)
                    ROOM(key) ROOM(gcra) ROOM(slide) ROOM(fixed) ROOM(soon) ROOM(late) ROOM(set)
                        ROOM(out) "off 0 1048576"),
    "limit_del gone", "lock third third ttl 1h wait 1h", "lock out third ttl 1h wait 1h",
    "lock others me ttl 1h wait 1h",
    /* A granted job that nobody claims, and one behind it. */
    "g:0 add soon lock soon unique uq x", "h:0 add soon lock soon x", SYNC(5, "1 soon 100 1048576"),
    "unlock soon me",
    /* Jobs that wait: for their due time, behind a pause, in a queue that nobody serves. */
    "t:0 add mail in 1h unique ut key kk token tt x", "u:0 add mail in 2h $big",
    "o:0 add off priority 2 x", "pause off by me reason why", "add nobody x", "N:0 add nobody x",
    "J:0 add mail x", "add later in 1h x", ".ZADD R:due:nobody 1 raw", ".ZADD R:due:raw 1 x",
    ".ZADD R:due:mail 4102444800000 raw2", "v1_await $P", "v1_await $t",
    /* Batches: an open one with a member, one that has ended, one whose keep is over. */
    "batch open finally apart pay", "A:0 add apart batch open x", "add apart batch open x",
    "batch ended then apart", "batch_seal ended", "batch over keep 1s",
    "H:0 add apart batch over x", "cancel $H", "batch_seal over", "batch closing",
    "add closing batch closing x", "batch_seal closing", "batch empty",
    /* Schedules: planned ones, in every kind of overlap, one whose last job runs, a paused one. */
    "schedule_set daily cron @daily queue apart then web pay",
    "schedule_set skip every 1s queue apart overlap skip pay",
    "schedule_set queue every 1s queue apart overlap queue pay",
    "schedule_set replace every 1s queue apart overlap replace pay",
    "schedule_set paused every 1s queue apart pay", "schedule_pause paused by me reason why",
    "schedule_run skip", "schedule_run queue", "schedule_run replace",
    "v1_declare_schedules $w 1767225600000 last 1 4 filed every 1s pay",
    /* Topics: one with a queue that cannot take a copy, others of a file. */
    "subscribe news fresh", "subscribe news.* keyed", ".HSET R:queues keyed lock=l-{key}",
    "v1_declare_topics $w 1767225600000 last 1 3 apart filed old.*", ".HSET R:cursors gone runs=1",
    ".ZADD R:schedule:gone 5 gone", "v1_note stray-key later:x", "v1_tail 60000",
    ".ZADD foreign 2000000000 member", ".ZADD late 5 member", ".ZADD R:q:web:5 1 j00000000002",
    ".HSET R:errors j00000000001 x",
    /* Bloom filters: one with a key, full ones, one for which a generation is over. */
    "seen keys a for 1h capacity 1000", "seen full a capacity 1", "seen full b",
    "seen short a for 5s capacity 1000",
    /* Leases, and the time in which a grant may be claimed, are over. */
    "+6000"};

/* So many filters that a new one takes the place of one that has forgotten all. */
#define FILTERS                                                                                    \
    ".EVAL for~i=1,996~do~redis.call('HSET',KEYS[1],'x'..i,redis.call('HGET',KEYS[1],'keys'))~"    \
    "end~redis.call('HSET',KEYS[1],'old','1000~0.1~1~8192~4~5~0~0') 1 R:seen;"

/* roles: the first letters of the roles whose work it is; `!`: it is refused for everybody. */
struct town_call {
    const char *roles, *line;
};

/* With a hundred notes, no further kind is noted. */
#define NOTES                                                                                      \
    ".EVAL for~i=1,100~do~redis.call('HSET',KEYS[1],'stray-key:'..i,1767225606000)~end 1 R:notes;"

static const struct town_call town_calls[] = {
    /* ---- producers */
    {"pmoa", "add fresh x"},
    {"pma", "publish news priority 3 token tp x"},
    {"pma", "publish news.more key k expire 1h x"},
    {"pma", "publish news.more $big"},
    {"pma", "publish nobody x"},
    {"pmcwa", "seen keys a for 1h"},
    {"pmcwa", "seen keys b"},
    {"pmcwa", "seen fresh a capacity 1000"},
    {"pmcwa", "seen full c"},
    {"pmcwa", "seen short a"},
    {"pmcwa", FILTERS "seen fresh a capacity 1000"},
    {"ma", "seen_del full"},
    {"mda", "seen_list"},
    {"pma", "broadcast mail priority 3 key k token b x"},
    {"pma", "broadcast mail per host in 5m x"},
    {"pma", "broadcast nobody $big"},
    {"ma", "subscribe news web"},
    {"ma", "subscribe filed apart"},
    {"ma", "unsubscribe filed apart"},
    {"ma", "unsubscribe news nobody"},
    {"wmda", "topics"},
    {"pmda", "find n"},
    {"pmda", "find '' kind gate limit 3"},
    {"pma", "v1_recent me@host $a $b"},
    {"pmda", "v1_recent me@host $a $b;v1_recents me@host"},
    {"pmoa",
     "add mail in 5m priority 3 key k attempts 3 timeout 1m expire 1h keep 1h trace " TOWN_TRACE
     " x"},
    {"pmoa", "add mail token tt unique ut key kk in 1h x"},
    {"pmoa", "add mail token new x"},
    {"pmoa", "add mail $big"},
    {"pmoa", "add off x"},
    {"pmoa", "add bad x"},
    {"pmoa", "add mail key k1 lock l-{key} sem k-{key} rate open x"},
    {"pmoa!", "add mail sem missing x"},
    {"pmoa", "add mail batch open priority 2 x"},
    {"pma", "batch new then fresh finally off on_dead off keep 1h pay"},
    {"pma", "batch new then fresh pay"},
    {"pma", "batch open finally apart pay"},
    {"pma", "batch_seal open"},
    {"pma", "batch_seal empty"},
    {"pma", "batch_seal ended"},
    {"pmoa", "add mail unique fresh unique_for 1h x"},
    {"pmoa", "add mail unique ut x"},
    {"pmoa", "add mail unique ut unique_mode replace y"},
    {"pmoa", "add mail unique ut unique_mode move in 3h $big"},
    {"pmoa", "add mail unique uo unique_mode replace y"},
    {"pmoa", "add web unique ud y"},
    {"pmoa", "add web unique ue y"},
    {"pmoa", "add door unique ua unique_mode replace y"},
    {"pmoa", "add door unique ua unique_mode move in 1h y"},
    {"pmoa", "add permits unique us unique_mode replace y"},
    {"pmoa", "add run unique uc unique_mode replace y"},
    {"pmoa", "add key unique uk unique_mode move y"},
    {"pmoa", "add soon unique uq unique_mode replace y"},
    {"pmoa", "add soon unique uq unique_mode move in 1h lock other y"},
    {"pmoa", "unlock set me;add set unique ux unique_mode replace y"},
    {"pmoa", NOTES "unlock set me;add set unique ux unique_mode replace y"},
    {"pmoa", "unlock late me;add late unique uy unique_mode replace y"},
    {"pmoa", "unlock out me;add out unique uz unique_mode move in 1h y"},
    {"pma", "v1_known mail"},
    {"pma", "v1_known fresh"},
    {"pmoa", "add mail then web then far on_dead off x"},
    {"pmoa!", "add mail then w~b x"},
    {"pma", "add_many mail then web on_dead off x y"},
    {"pma", "add_many mail x y z"},
    {"pma", "add_many fresh in 1h priority 9 lock door -- x y"},
    /* ---- callers */
    {"ca", "lock free me"},
    {"ca", "lock door me ttl 2h"},
    {"ca", "lock others me wait 1m"},
    {"ca", "lock others fourth"},
    {"ca", "lock over me wait 1m"},
    {"ca", "lock soon me wait 1m"},
    {"ca", "unlock door me"},
    {"ca", "unlock third me"},
    {"ca", "unlock far me"},
    {"ca", "unlock deep me token t"},
    {"ca", "unlock others me"},
    {"ca", "unlock undefined me"},
    {"ca", "unlock many me"},
    {"ca", "unlock rates me"},
    {"ca", "unlock set me"},
    {"ca", NOTES "unlock undefined me"},
    {"ca", "unlock late me"},
    {"ca", "unlock out me"},
    {"ca", "unlock free me"},
    {"ca", "renew door me ttl 3h"},
    {"ca", "renew permits me ttl 3h kind sem"},
    {"ca!", "renew over other"},
    {"ca", "sem_acquire permits me"},
    {"ca", "sem_acquire permits other wait 1m"},
    {"ca", "sem_acquire pair other wait 1m"},
    {"ca", "sem_acquire own me"},
    {"ca", "sem_acquire k-new me"},
    {"ca!", "sem_acquire missing me"},
    {"ca", "sem_release permits me"},
    {"ca", "sem_release pair me"},
    {"ca", "sem_release shut me"},
    {"ca", "throttle open quota 3"},
    {"ca", "throttle early"},
    {"ca", "throttle back"},
    {"ca", "throttle log"},
    {"ca", "throttle gcra"},
    {"ca", "throttle slide"},
    {"ca", "throttle fixed quota 2"},
    {"ca", "fence_check door $F"},
    {"ca", "fence_check door 1"},
    {"a", "fenced door $F SET later:{t}:written x"},
    {"", "fenced door $F SET foreign x"}, /* for users with a right to that key */
    {"", "v1_adopt mail foreign '' s 1 '' '' 200"},
    {"", "v1_collect $w 2 mail foreign '' s - 0 apart late '' ms - 0"},
    /* ---- workers */
    {"wa", "v1_register 0 iw 2 $w 2 host h1 queues mail,new 1 max_payload 5000 2 $P 1 $C 1"},
    {"wa", "v1_register 0 iz 1 0 1 queues mail 0 2 $a 1 $g 1"},
    {"wa", "v1_beat $w mail,fresh"},
    {"wa", "v1_beat $v"},
    {"wmda", "v1_schedules 0"},
    {"wa", "v1_declare_schedules $w 1767225600001 last 1 4 other every 1s pay"},
    {"wa", "v1_declare_topics $w 1767225600001 last 2 2 apart new 1 fresh"},
    {"wa", "v1_fire $w 0"},
    {"wa", "1:3 schedules daily;v1_fire $w 2 daily $1 - 1767225600000 2025b 3 1 2026001 0 nope 1 - "
           "- x 0 0 0"},
    {"wa", "1:3 schedules daily;v1_fire $w 1 daily $1 - - 2025b 0 0 2 1767225600000 2026001 "
           "1767225600001 2026002"},
    {"wa", "1:3 schedules skip;v1_fire $w 1 skip $1 - - 2025b 0 0 1 1767225600000 2026001"},
    {"wa", "1:3 schedules queue;v1_fire $w 1 queue $1 - - 2025b 0 0 1 1767225600000 2026001"},
    {"wa", "1:3 schedules replace;v1_fire $w 1 replace $1 - - 2025b 0 0 1 1767225600000 2026001"},
    {"wa", "1:3 schedules paused;v1_fire $w 1 paused $1 - - 2025b 0 0 1 1767225600000 2026001"},
    {"wa", "v1_reconcile $w 1 2 $P 1 $O 1 9000000000000000"},
    {"w", "v1_sync $w 1 0 100 0 5 mail 100 1048576 web 100 1048576 off 9 1048576 nobody 9 1048576 "
          "bad 9 1048576 0"},
    {"w",
     "v1_sync $w 1 0 100 6 $P 1 done mail 0 0 ok '' $O 1 retry mail 1000 7 T O $C 1 dead mail "
     "100 7 T O $K 1 release mail 0 0 T '' $B 1 progress mail 0 0 half '' $D 1 done web 0 0 ok "
     "'' 1 mail 9 1048576 0"},
    {"w",
     "v1_sync $w 1 0 100 2 $O 1 retry mail 1000 7 T O $D 1 done web 0 0 ok '' 1 mail 9 1048576 "
     "1 mail 1 1 $P 1000"},
    {"w", "add plain x;add plain y;v1_sync $w 1 0 100 0 1 plain 100 1048576 0 1000"},
    {"w", "v1_sync $v 1 0 0 2 $L 1 done far 0 0 ok '' $G 1 done far 60000 0 T O 0 0"},
    {"w", "v2_step $w 1 0 100 0 1 plain 100 1048576 0"},
    {"w", "add plain x;add plain y;v1_sync $w 1 0 100 0 1 plain 100 1048576 0"},
    {"w", "unlock far me;v1_sync $w 1 0 100 0 1 nobody 100 1048576 0"},
    {"w", "unlock rates me;v1_sync $w 1 0 100 0 1 rates 100 1048576 0"},
    {"w", "add plain then next on_dead mail $big;"
          "1:0 add plain then next on_dead mail x;v1_sync $w 1 0 100 0 1 plain 100 1048576 0"},
    {"w", "1:0 add plain then next x;2:0 add plain then next $big;"
          "v1_sync $w 1 0 100 0 1 plain 100 1048576 0;"
          "v1_sync $w 1 0 100 1 $2 1 done plain 0 0 ok '' 1 next 100 1048576 1 plain 1 1 $1"},
    {"w", "1:0 add plain then next x;2:0 add plain then next $big;"
          "v1_sync $w 1 0 100 0 1 plain 100 1048576 0;"
          "v1_sync $w 1 0 100 2 $1 1 result plain 0 0 ok new $2 1 done plain 60000 0 ok '' 0 0"},
    {"w", "1:0 add plain on_dead next x;2:0 add plain on_dead next $big;"
          "v1_sync $w 1 0 100 0 1 plain 100 1048576 0;"
          "v1_sync $w 1 0 100 2 $1 1 dead plain 9 7 T O $2 1 dead plain 9 7 T O 1 next 100 1048576 "
          "0"},
    {"w", "1:0 add plain expire 1ms on_dead plain $big;.ZADD R:q:plain:5 1 $1;"
          "v1_sync $w 1 0 100 0 1 plain 100 1048576 0"},
    {"w", "1:0 add keyed key k x;v1_sync $w 1 0 100 0 1 keyed 100 1048576 0;v1_tidy $w 0"},
    {"w", "v2_look 2000 mail web off"},
    {"wa", "v1_reap $w $v 1 3 100"},
    {"wa", "v1_reap $w $p 1 3 100"},
    {"w", "v1_tidy $w 3 mail 1 web 1 nobody 1 4 room 4 retried 3 series:mail 6:5 keys 1~2~3~4~k"},
    {"wa",
     "v1_declare $w 2 fresh rate~gcra~5~1000~1 gone semaphore~2~keep 2 mail sem=permits bad ''"},
    {"wa", "v1_leave $i"},
    {"wa", "v1_keep $w $P 1 kept"},
    {"wa", "v1_keep $w $P 1 kept output"},
    {"wa", "v1_keep $w $P 2 kept output"},
    {"wa", "v1_enter $p lock:prog"},
    {"wa", "v1_enter $i lock:free"},
    {"wa", "v1_enter $i lock:door wait"},
    {"wa", "v1_enter $i sem:permits wait"},
    {"wa", "v1_exit $p"},
    {"wa", "v1_exit $q"},
    {"oa", "bulk retry web dead to fresh by me why because"},
    {"oa", "bulk retry web dead reason T* spread 1h"},
    {"oa", "bulk cancel mail due rate 5/s"},
    {"oa", "bulk cancel door parked"},
    {"oa", "+2000;bulk cancel closing due"},
    {"oa", "bulk cancel key parked key k1"},
    {"oa", "bulk reschedule many parked at +1h"},
    {"oa", "bulk purge web done"},
    {"oa", "bulk purge permits parked"},
    {"w", "bulk retry web dead to fresh rate 1000/s;+10;v1_bulk $w"},
    {"w", "bulk purge door parked rate 1000/s;+10;v1_bulk $w"},
    {"w", "bulk retry web dead rate 1/1h;v1_tidy $w 0"},
    {"oa", "1:0 bulk retry web dead rate 1/1h;bulk_abort $1 me"},
    {"da", "1:0 bulk retry web dead;bulk_show $1"},
    {"da", "bulk retry web dead;bulk_show"},
    {"w", "v1_rights"},
    {"wa", "v1_note raw-queue raw"},
    {"wa", "v1_note stray-key later:y"},
    {"wda", "version"},
    {"wda", "v1_health 12000"},
    /* ---- dashboards */
    {"mda", "show $a"},
    {"mda", "show $K"},
    {"mda", "show mail@ut"},
    {"mda", "result $E"},
    {"da", "v1_tenants turns 20"},
    {"da", "explain $a"},
    {"da", "explain $s"},
    {"da", "explain $r"},
    {"da", "explain $m"},
    {"da", "explain $x"},
    {"da", "explain $C"},
    {"da", "explain $D"},
    {"da", "explain $g"},
    {"da", "explain $o"},
    {"da", "explain $N"},
    {"da", "explain $J"},
    {"da", "stats"},
    {"da", "stats mail"},
    {"da", "limits"},
    {"da", "v1_workers"},
    {"da", "v1_suspects"},
    {"w", "v1_suspects"},
    {"da", "v1_list * running '' 200"},
    {"da", "v1_gates lock:door sem:permits sem:pair rate:gcra rate:slide rate:fixed lock:prog"},
    {"da", "v1_list mail due '' 200"},
    {"da", "v1_list mail running '' 200"},
    {"da", "v1_list mail parked '' 200"},
    {"da", "v1_list web dead '' 200"},
    {"da", "v1_list web done '' 200"},
    {"da", "v1_list nobody due '' 200"},
    {"da", "v1_queues '' 100"},
    {"da", "v1_queues .0:0 100"},
    {"da", "v1_running"},
    {"da", "v1_summary"},
    {"da", "v1_reasons web '' 500"},
    {"da", "v1_ahead mail 1767225600000 60000 60"},
    {"da", "v1_gate_names '' 250"},
    {"da", "v1_metrics 0 retried"},
    {"da", "v1_series"},
    {"da", "v1_series mail m 500000 2"},
    {"a", "v1_distinct mail 20000 2"},
    {"da", "top failed keys days 2"},
    {"da", "v1_audit running '' 200"},
    {"da", "v1_audit jobs '' 200"},
    {"da", "v1_audit tries '' 200"},
    {"da", "v1_audit parked '' 200"},
    {"da", "v1_audit holds '' 200"},
    {"da", "v1_audit set '' 200 q:mail:5"},
    {"da", "v1_audit set '' 200 dead:web"},
    {"da", "v1_audit queue '' 200 mail"},
    {"da",
     "v1_audit gates '' 200 lock:door sem:permits granted:rates wait:sem:pair wait:lock:third"},
    {"da", ".SADD R:rate:granted:open j00000000003;v1_audit gates '' 200 rate:granted:open"},
    {"da", "v1_tail 1000"},
    /* ---- operators */
    {"a", "v1_repair running '' 200"},
    {"a", "v1_repair set '' 200 q:web:5"},
    {"a", "v1_repair errors '' 200"},
    {"a", ".SADD R:rate:granted:open j00000000003;v1_repair gates '' 200 rate:granted:open"},
    {"moa", "cancel $t"},
    {"ma", "schedule_set fresh cron @daily queue fresh key k priority 3 tz Europe/Berlin pay"},
    {"ma", "schedule_set skip every 2s queue apart overlap skip pay"},
    {"ma", "schedule_del skip"},
    {"moa", "schedule_pause skip by me reason why for 1h"},
    {"moa", "schedule_resume paused"},
    {"moa", "schedule_run daily"},
    {"moa", "schedule_run skip"},
    {"moa", "schedule_run queue for 5 force"},
    {"moa", "schedule_run replace at +1h"},
    {"wmda", "schedule_calendar skip 2026"},
    {"wmda", "schedules"},
    {"wmda", "schedules skip"},
    {"ma", "batch_cancel open"},
    {"ma", "batch_cancel open $A"},
    {"wmda", "batch_show open"},
    {"mda", "batch_jobs open"},
    {"da", "v1_batches 0"},
    {"moa", "cancel $P"},
    {"moa", "cancel $a"},
    {"moa", "cancel $s"},
    {"moa", "cancel $g"},
    {"moa", "cancel key@uk"},
    {"moa", "run_now $t"},
    {"moa", "run_now $a"},
    {"moa", "reschedule $t +3h"},
    {"moa", "reschedule $s +3h"},
    {"oa", "retry $D"},
    {"oa", "pause mail for 1h"},
    {"a", "pause fresh;v1_forget fresh"},
    {"a!", "v1_forget mail"},
    {"oa", "resume off"},
    {"a", "limit_set permits semaphore 4"},
    {"a", "limit_set gone semaphore 2"},
    {"a", "limit_set gcra rate 100/1s burst 50"},
    {"a", "limit_set k-{key} semaphore 2"},
    {"a", "limit_set fixed rate 5/1h algorithm sliding"},
    {"a", "limit_del pair"},
    {"a", "limit_del k-{key}"},
    {"a", "v1_quiet * on"},
    {"ma", "v1_await $a"},
    {"a", "v1_export mail parked 1 '' '' 200"},
    {"a", "v1_export nobody due 1 '' '' 200"},
    {"a", "v1_import mail 2 due 5 key k x 1 lock door y"},
    {"a", "v1_import mail 2 dead dead~65~5~1~why\n tries 1~1~0 x"},
    {"a", "v1_import mail 2 unique ut unique_mode replace x"},
    {"a", "v1_purge mail due 100"},
    {"a", "v1_purge mail parked 40"},
    {"a", "v1_purge web dead 100"},
    {"a", "v1_purge web done 100"},
};

/* The name of the function that the line calls at its end; *len its length. */
static inline const char *town_function(const char *line, size_t *len)
{
    const char *last = strrchr(line, ';');

    last = last != NULL ? last + 1 : line;
    *len = strcspn(last, " ");
    return last;
}

/* The letter of the first role whose work the function is; '\0': there is none. */
static inline char town_role(const char *function)
{
    for (size_t i = 0; i < sizeof(town_calls) / sizeof(town_calls[0]); i++) {
        size_t len;
        const char *name = town_function(town_calls[i].line, &len);

        if (strlen(function) == len && strncmp(name, function, len) == 0 &&
            town_calls[i].roles[0] != '\0')
            return town_calls[i].roles[0];
    }
    return '\0';
}

#endif
