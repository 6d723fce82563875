## Manual pages and completions: templates, filled from the tables of the programs by man/fill. They
## are made anew wherever they are built, and are no part of the archive.
noinst_PROGRAMS += man/fill
man_fill_SOURCES = man/fill.c man/pages.c man/parts.h man/roff.c man/roff.h man/shells.c
man_fill_CPPFLAGS = $(AM_CPPFLAGS) -DPKGLIBDIR='"$(pkglibdir)"' -DDOCDIR='"$(docdir)"'
man_fill_LDADD = $(libs)
pages = man/later.1 man/later-web.8 man/later-handlers.7 man/later-protocol.7 man/laterd.8 man/laterd.yaml.5
bash_completions = completion/bash/later completion/bash/laterd
zsh_completions = completion/zsh/_later completion/zsh/_laterd
filled = $(pages) $(bash_completions) $(zsh_completions)
nodist_man_MANS = $(pages)
bashcompletionsdir = $(datadir)/bash-completion/completions
nodist_bashcompletions_DATA = $(bash_completions)
## Where zsh itself looks; Debian's looks for those of packages in /usr/share/zsh/vendor-completions:
## make install zshfunctionsdir=...
zshfunctionsdir = $(datadir)/zsh/site-functions
nodist_zshfunctions_DATA = $(zsh_completions)
EXTRA_DIST += man/later.1.in man/later-web.8.in man/later-handlers.7.in man/later-protocol.7.in man/laterd.8.in \
	man/laterd.yaml.5.in completion/bash/later.in completion/bash/laterd.in \
	completion/zsh/_later.in completion/zsh/_laterd.in
CLEANFILES += $(filled)
$(filled): man/fill$(EXEEXT)
	$(AM_V_GEN)mkdir -p $(@D) && ./man/fill$(EXEEXT) $(srcdir)/$@.in > $@.tmp && mv $@.tmp $@
man/later.1: man/later.1.in
man/later-handlers.7: man/later-handlers.7.in
man/later-protocol.7: man/later-protocol.7.in
man/laterd.8: man/laterd.8.in
man/later-web.8: man/later-web.8.in
man/laterd.yaml.5: man/laterd.yaml.5.in
completion/bash/later: completion/bash/later.in
completion/bash/laterd: completion/bash/laterd.in
completion/zsh/_later: completion/zsh/_later.in
completion/zsh/_laterd: completion/zsh/_laterd.in
unsanitized += tests/checks/check-man.sh
