#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the search of a machine's memory finds what is there, at any place, and nothing else
# tags: harness rdma
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"
need_tool cc jq

cc -O2 -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -o find-pattern \
	"$TOP/scenarios/lib/accounting/find-pattern.c" -ljson-c || exit 1
cat >put.c <<'END'
/* put SEED FIRST WORDS: these words of the pattern */
#include <stdio.h>
#include <stdlib.h>
#include "pattern.h"
int main(int argc, char **argv)
{
	uint64_t seed = strtoull(argv[1], NULL, 0), first = strtoull(argv[2], NULL, 0);

	for (uint64_t i = 0; argc == 4 && i < strtoull(argv[3], NULL, 0); i++) {
		uint64_t w = pattern_word(seed + first + i);

		if (pattern_where(w) != seed + first + i)
			return 1;
		fwrite(&w, sizeof(w), 1, stdout);
	}
	return 0;
}
END
cc -O2 -I"$TOP/scenarios/lib/accounting" -o put put.c || exit 1

# found FILE SEED:BYTES: "found longest_run"
found() {
	./find-pattern "$@" | jq -r 'map("\(.found) \(.longest_run)") | join(", ")'
}

head -c 1000003 /dev/urandom >noise
check_eq "noise has nothing of it" "0 0" "$(found noise 5:8000)"
head -c 1000000 /dev/zero >zeros
check_eq "nor have zeros" "0 0" "$(found zeros 5:8000)"
{ cat noise; ./put 5 0 1000; cat zeros; } >whole
check_eq "a whole copy at a crooked place" "8000 8000" "$(found whole 5:8000)"
{ head -c 8197 zeros; ./put 5 10 512; cat noise; ./put 5 600 100; } >pieces
check_eq "two pieces" "4896 4096" "$(found pieces 5:8000)"
# with holes before, between and behind
truncate -s 8M holes
./put 5 0 512 | dd of=holes bs=4096 seek=256 conv=notrunc status=none
./put 5 512 488 | dd of=holes bs=4096 seek=1024 conv=notrunc status=none
check_eq "pieces between holes" "8000 4096" "$(found holes 5:8000)"
{ ./put 5 0 100; cat noise; ./put 5 50 100; } >twice
check_eq "what is there twice counts once" "1200 800" "$(found twice 5:8000)"
{ ./put 5 0 100; ./put 1000000 0 100; } >both
check_eq "several patterns at a time" "800 800, 800 800, 0 0" \
	"$(found both 5:8000 1000000:8000 123456:8000)"
{ cat noise; ./put 5 7 1; cat zeros; } >word
check_eq "one word alone is not looked for" "0 0" "$(found word 5:8000)"
{ cat noise; ./put 5 1000 100; } >beyond
check_eq "words beyond the end of the pattern are not of it" "0 0" \
	"$(found beyond 5:8000)"

check_fails "no pattern: an error" "^usage: find-pattern" ./find-pattern noise
check_fails "no numbers: an error" "five:8000 is not SEED:BYTES" ./find-pattern noise five:8000
check_fails "something behind the numbers: an error" "5:8000:1 is not SEED:BYTES" ./find-pattern noise 5:8000:1
check_fails "a pattern too short to be found: an error" "5:8 is not SEED:BYTES" ./find-pattern noise 5:8
check_fails "no file: an error" "nowhere: No such file or directory" ./find-pattern nowhere 5:8000
: >empty
check_fails "an empty file: an error" "empty: too short" ./find-pattern empty 5:8000
finish
