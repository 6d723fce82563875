#!/usr/bin/perl
# stream.pl: a worker for a queue with `mode: stream` (doc/stream.md). It counts the words of the
# payload, one job at a time. To try it out: payloads `fail`, `retry`, `dead`, `sleep 5`.
use strict;
use warnings;

my %asked = (fail => 'fail %s asked to', retry => 'retry %s 1s later please', dead => 'dead %s never');

$| = 1;    # each print is written at once: a pipe is block-buffered
binmode STDIN;
print "later-stream 1\n";
while (defined(my $header = <STDIN>)) {
    chomp $header;
    my ($what, @words) = split / /, $header;
    next unless defined $what and $what eq 'job';
    my %job = map { split /=/, $_, 2 } grep { /=./ } @words;
    my ($id, $len) = @job{qw(id len)};

    my $got = read STDIN, my $payload, $len + 1;    # and the line feed after it
    die "ended in the middle of a job\n" unless defined $got and $got == $len + 1;
    chop $payload;

    (my $text = $payload) =~ s/\n+\z//;
    if ($asked{$text}) {
        printf "$asked{$text}\n", $id;
        next;
    }
    my $n = $text =~ /\Asleep ([0-9]{1,4})\z/ ? $1 : 0;
    for my $i (1 .. $n) {
        sleep 1;
        print "progress $id $i of $n\n";
    }
    my $count = () = $payload =~ /[^ \t\n\x0b\f\r]+/g;
    print "ok $id $count words in $len bytes\n";
}
