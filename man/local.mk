## Manual pages and completions: templates, filled from the tables of the programs by man/fill. They
## are made anew wherever they are built, and are no part of the archive.
noinst_PROGRAMS += man/fill
man_fill_SOURCES = man/fill.c man/pages.c man/parts.h man/roff.c man/roff.h man/shells.c
man_fill_CPPFLAGS = $(AM_CPPFLAGS) -DPKGLIBDIR='"$(pkglibdir)"' -DDOCDIR='"$(docdir)"'
man_fill_LDADD = $(libs)
pages = man/later.1 man/later-web.8 man/laterd.8 man/laterd.yaml.5
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
EXTRA_DIST += man/later.1.in man/later-web.8.in man/laterd.8.in man/laterd.yaml.5.in \
	completion/bash/later.in completion/bash/laterd.in completion/zsh/_later.in completion/zsh/_laterd.in
CLEANFILES += $(filled)
$(filled): man/fill$(EXEEXT)
	$(AM_V_GEN)mkdir -p $(@D) && ./man/fill$(EXEEXT) $(srcdir)/$@.in > $@.tmp && mv $@.tmp $@
man/later.1: man/later.1.in
man/laterd.8: man/laterd.8.in
man/later-web.8: man/later-web.8.in
man/laterd.yaml.5: man/laterd.yaml.5.in
completion/bash/later: completion/bash/later.in
completion/bash/laterd: completion/bash/laterd.in
completion/zsh/_later: completion/zsh/_later.in
completion/zsh/_laterd: completion/zsh/_laterd.in

## The contracts are documents, and these are their pages, made by lowdown. They are part of the archive, so that
## a build from that does not need it. The title of the document is the page's NAME. Links lose their targets, since
## their texts name the documents; code becomes bold; no word is divided; tables lose their rules, and their last
## columns get the room.
contracts = man/later-handlers.7 man/later-plugins.7 man/later-protocol.7 man/later-stream.7
dist_man_MANS = $(contracts)
EXTRA_DIST += man/see-also.md
MAINTAINERCLEANFILES = $(contracts)
man/later-handlers.7: doc/handlers.md
man/later-plugins.7: doc/plugins.md
man/later-protocol.7: doc/protocol.md
man/later-stream.7: doc/stream.md
$(contracts):
	$(AM_V_GEN)mkdir -p $(@D) && name=`basename $@ .7` && \
	{ echo '# NAME'; echo; sed -n "1s/^# \(.\)/$$name - \l\1/p" $<; echo; echo '# DESCRIPTION'; \
		sed -e 1d -e 's/\[\([^][]*\)\]([^()]*)/\1/g' $< $(srcdir)/man/see-also.md; } >$@.md && \
	lowdown -s -Tman --out-no-smarty --parse-no-intraemph -M shiftheadinglevelby=-1 \
		-M title=`echo $$name | tr a-z A-Z` -M section=7 -M source='laterd $(VERSION)' \
		-M date="`sed -n 's/^\.Dd //p' $(srcdir)/man/later.1.in`" $@.md >$@.tmp && \
	sed -e '/^\.TH /a .ad l\n.nh\n.nr HY 0' -e 's/\\fC/\\fB/g' -e 's/\\f(C[BR]/\\fB/g' \
		-e 's/^tab(|) expand allbox;$$/tab(|);/' -e 's/^l l\.$$/l lx./' -e 's/^l l l\.$$/l lx lx./' $@.tmp >$@ && \
	rm $@.md $@.tmp
$(contracts): man/see-also.md man/later.1.in configure.ac
unsanitized += tests/checks/check-man.sh
