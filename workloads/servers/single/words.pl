# How often each word of a text follows each other: a hash of hashes, which is what most of memory is.
use strict;
use warnings;

my %follows;
my $before = '';
while (my $line = <>) {
    for my $word (split ' ', $line) {
        $follows{$before}{$word}++;
        $before = $word;
    }
}
my ($pairs, $most) = (0, 0);
for my $word (sort keys %follows) {
    for my $count (values %{ $follows{$word} }) {
        $pairs++;
        $most = $count if $count > $most;
    }
}
print scalar(keys %follows), " words, $pairs pairs, the most frequent $most times\n";
