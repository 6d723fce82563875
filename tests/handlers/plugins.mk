## Plug-ins: the installed ones, and one that is built in several ways for tests.
pluginsdir = $(pkglibdir)/plugins
nodist_plugins_DATA = handlers/plugins/append.so handlers/plugins/noop.so
pluginsrcdir = $(pkgdatadir)/plugins
dist_pluginsrc_DATA = handlers/plugins/append.c handlers/plugins/noop.c
include_HEADERS = src/run/plugin/later_plugin.h
test_plugins = tests/handlers/obedient.so tests/handlers/obedient-2.so tests/handlers/other-abi.so \
	tests/handlers/nameless.so
CLEANFILES += $(nodist_plugins_DATA) $(test_plugins)
PLUGIN_CC = $(AM_V_GEN)mkdir -p $(@D) && $(CC) -I$(top_srcdir)/src/run/plugin $(WARN_CFLAGS) -D_GNU_SOURCE \
	-std=gnu11 $(CFLAGS) $(LDFLAGS) -fPIC -shared -pthread
handlers/plugins/append.so: handlers/plugins/append.c src/run/plugin/later_plugin.h
	$(PLUGIN_CC) -o $@ $(top_srcdir)/handlers/plugins/append.c
handlers/plugins/noop.so: handlers/plugins/noop.c src/run/plugin/later_plugin.h
	$(PLUGIN_CC) -o $@ $(top_srcdir)/handlers/plugins/noop.c
$(test_plugins): tests/handlers/obedient.c src/run/plugin/later_plugin.h
tests/handlers/obedient.so:
	$(PLUGIN_CC) -o $@ $(top_srcdir)/tests/handlers/obedient.c
tests/handlers/obedient-2.so:
	$(PLUGIN_CC) -DVERSION='"2"' -o $@ $(top_srcdir)/tests/handlers/obedient.c
tests/handlers/other-abi.so:
	$(PLUGIN_CC) -DABI=7 -o $@ $(top_srcdir)/tests/handlers/obedient.c
tests/handlers/nameless.so:
	$(PLUGIN_CC) -DNAMELESS -o $@ $(top_srcdir)/tests/handlers/obedient.c
plugin_tests = tests/integration/test_plugin
if HAVE_CMOCKA
check_DATA += $(test_plugins)
endif
