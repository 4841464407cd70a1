// SPDX-License-Identifier: MIT
/*
 * Facts of this machine and of records: answers, mistakes in records, what is
 * left out, and each allocation, open and read failing.  Works in the current
 * folder.  The C library's functions are wrapped by the linker.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "../../cuda/test/ktap.h"
#include "../facts.h"
#include "faults.h"

/* ---- a folder to look at ---- */

static char here[PATH_MAX];

static const char *in(const char *name)
{
	static char path[4][PATH_MAX + 64];
	static unsigned int turn;

	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", here, name);
	return path[turn];
}

static void put(const char *name, const char *data, size_t n)
{
	FILE *out = fopen(in(name), "w");

	if (!out || fwrite(data, 1, n, out) != n || fclose(out)) {
		perror(name);
		exit(1);
	}
}

#define PUT(name, text) put(name, text, sizeof(text) - 1)

/* A config space with a serial number behind another capability. */
static void make_config(unsigned char *c)
{
	memset(c, 0, 4096);
	c[0] = 0xde;
	memcpy(c + 0x100, "\x01\x00\x01\x15", 4);	/* AER, next 150 */
	memcpy(c + 0x150, "\x03\x00\x01\x00", 4);
	memset(c + 0x154, 0xab, 8);
}

static void make_folder(void)
{
	unsigned char config[4096];
	static char big[FACTS_VALUE_MAX + 1];

	if (mkdir("f", 0755) || mkdir("f/sub", 0755) ||
	    mkdir("f/empty", 0755) || mkdir("f/net", 0755) ||
	    mkdir("f/dm", 0755)) {
		perror("f");
		exit(1);
	}
	PUT("f/text", "  two words\n");
	PUT("f/odd name", "tab\there\\ back\nsecond \x01 end ");
	PUT("f/nothing", "");
	put("f/nul", "a\0b", 3);
	PUT("f/values", "bb : 7\nb=1\nb= 2\nlong\t:\ty  \n");
	PUT("f/serial", "S3CRET");
	PUT("f/ids", "GPU-0a1b2c3d-1111-2222-3333-0123456789ab and "
	    "de:ad:be:ef:00:01 or 0001:0203:aabb:ccdd, not 0000:01:00.0 nor "
	    "xde:ad:be:ef:00:01\n");
	PUT("f/closed", "x");
	PUT("f/net/address", "n3t");
	PUT("f/address", "0000:01:00.0");
	PUT("f/dm/uuid", "LVM-Abc123");
	make_config(config);
	put("f/config", (char *)config, sizeof(config));
	put("f/big", big, sizeof(big));
	if (symlink("../text", "f/sub/link") || symlink("none", "f/dangling")) {
		perror("f");
		exit(1);
	}
}

/* All questions of this test; the answers as one text. */
static int answers(struct facts *f, char *out, size_t size)
{
	static const char *const files[] = {
		"f/text", "f/odd name", "f/nothing", "f/nul", "f/none", "f/sub",
		"f/text/below", "f/big",
	};
	static const char *const links[] = {
		"f/sub/link", "f/dangling", "f/none",
	};
	static const char *const folders[] = {
		"f", "f/empty", "f/sub", "f/none", "f/text",
	};
	static const char *const keys[] = { "b", "bb", "long", "lon", "c" };
	char buf[8192], **names, **name;
	FILE *o = fmemopen(out, size, "w");
	size_t i;
	ssize_t n;
	int r;

	/* memory that runs out, or files, is no answer to keep */
#define LOST(r) ((r) == -ENOMEM || (r) == -EMFILE || (r) == -EIO)
	for (i = 0; i < sizeof(files) / sizeof(*files); i++) {
		n = facts_read(f, in(files[i]), buf, sizeof(buf));
		if (LOST(n))
			goto lost;
		fprintf(o, "%zd ", n);
		if (n > 0)
			fwrite(buf, 1, (size_t)n, o);
		r = facts_text(f, in(files[i]), buf, sizeof(buf));
		fprintf(o, " %d %s\n", r, r ? "" : buf);
	}
	for (i = 0; i < sizeof(links) / sizeof(*links); i++) {
		r = facts_link(f, in(links[i]), buf, sizeof(buf));
		if (LOST(r))
			goto lost;
		fprintf(o, "%d %s\n", r, r ? "" : buf);
	}
	for (i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		r = n = facts_list(f, in(folders[i]), &names);
		if (LOST(r))
			goto lost;
		fprintf(o, "%d", r);
		for (name = r < 0 ? NULL : names; name && *name; name++)
			fprintf(o, " %s", *name);
		fputc('\n', o);
		if (r >= 0)
			facts_list_free(names);
	}
	for (i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		r = facts_value(f, in("f/values"), keys[i], buf, sizeof(buf));
		if (LOST(r))
			goto lost;
		fprintf(o, "%d %s\n", r, r ? "" : buf);
	}
	r = facts_value(f, in("f/none"), "b", buf, sizeof(buf));
	if (LOST(r))
		goto lost;
	fprintf(o, "%d\n", r);
	fclose(o);
	return 0;
lost:
	fclose(o);
	return -1;
}

/* ---- tests ---- */

static char saved[1 << 20];

static const char *slurp(const char *name)
{
	FILE *f = fopen(in(name), "r");
	size_t n = f ? fread(saved, 1, sizeof(saved) - 1, f) : 0;

	saved[n] = '\0';
	if (f)
		fclose(f);
	return saved;
}

static void t_live(void)
{
	char buf[256], line[8191 + 4], **names = NULL;
	struct facts *f;
	int r;

	ktap(!facts_open(&f, NULL) && facts_live(f), "this machine is opened");
	r = facts_text(f, in("f/text"), buf, sizeof(buf));
	ktap(!r && !strcmp(buf, "two words"), "text is trimmed");
	ktap(facts_read(f, in("f/nul"), buf, 3) == 3 && !memcmp(buf, "a\0b", 3),
	     "bytes are read");
	ktap(facts_read(f, in("f/nul"), buf, 2) == -EOVERFLOW &&
	     facts_text(f, in("f/text"), buf, 9) == -EOVERFLOW &&
	     facts_link(f, in("f/sub/link"), buf, 3) == -EOVERFLOW,
	     "too small a buffer is an error, not a short answer");
	ktap(facts_text(f, in("f/none"), buf, sizeof(buf)) == -ENOENT,
	     "what is not there is ENOENT");
	ktap(facts_read(f, in("f/big"), buf, sizeof(buf)) == -EFBIG,
	     "a file that is too large is refused");
	open_error = EACCES;
	fail_at[OPEN] = calls[OPEN] + 1;
	ktap(facts_text(f, in("f/closed"), buf, sizeof(buf)) == -EACCES,
	     "what is not allowed is EACCES");
	open_error = EMFILE;
	ktap(facts_text(f, in("f/closed"), buf, sizeof(buf)) == -EACCES &&
	     !facts_save(f, in("closed.rec")) &&
	     strstr(slurp("closed.rec"), "f/closed EACCES\n"),
	     "and stays that, in a record too");
	r = facts_link(f, in("f/sub/link"), buf, sizeof(buf));
	ktap(!r && !strcmp(buf, in("f/text")), "links are resolved");
	r = facts_list(f, in("f/sub"), &names);
	ktap(r == 1 && !strcmp(names[0], "link") && !names[1],
	     "folders are listed");
	facts_list_free(names);
	ktap(!facts_value(f, in("f/values"), "b", buf, sizeof(buf)) &&
	     !strcmp(buf, "1"), "a value: the first, of the whole key");
	ktap(!facts_value(f, in("f/values"), "bb", buf, sizeof(buf)) &&
	     !strcmp(buf, "7"), "a value behind a colon");
	ktap(facts_value(f, in("f/values"), "a", buf, sizeof(buf)) == -ENOKEY,
	     "no such value is ENOKEY");
	memset(line, 'x', sizeof(line));
	memcpy(line + sizeof(line) - 4, "c=9\n", 4);
	put("f/long", line, sizeof(line));
	ktap(facts_value(f, in("f/long"), "c", buf, sizeof(buf)) == -ENOKEY,
	     "what stands inside of a long line is no key");
	ktap(facts_read(f, "f/text", buf, sizeof(buf)) == -EINVAL &&
	     facts_value(f, "f/values", "b", buf, 9) == -EINVAL &&
	     facts_value(f, in("f/values"), "", buf, 9) == -EINVAL,
	     "a relative path or an empty key is refused");
	PUT("f/changes", "1");
	facts_text(f, in("f/changes"), buf, sizeof(buf));
	PUT("f/changes", "2");
	ktap(!facts_text(f, in("f/changes"), buf, sizeof(buf)) &&
	     !strcmp(buf, "1"), "a path is asked for once");
	facts_close(f);
	facts_close(NULL);
}

static void t_symbols(void)
{
	char buf[8];
	struct facts *f;
	int r, none;

	facts_open(&f, NULL);
	r = facts_value(f, "/proc/kallsyms", "vfs_read", buf, sizeof(buf));
	none = facts_value(f, "/proc/kallsyms", "vfs_rea", buf, sizeof(buf));
	if (r == -ENOENT || r == -EACCES)
		ktap_skip("symbols of the kernel", "no /proc/kallsyms here");
	else
		ktap(!r && none == -ENOKEY, "symbols of the kernel (%d, %d)",
		     r, none);
	facts_close(f);
}

static void t_round_trip(void)
{
	static char before[65536], after[65536];
	struct facts *f, *g = NULL;

	facts_open(&f, NULL);
	answers(f, before, sizeof(before));
	ktap(!facts_save(f, in("one.rec")), "a record is written");
	facts_close(f);
	ktap(!facts_open(&g, in("one.rec")) && !facts_live(g),
	     "and read: %s", facts_error());
	if (!g)
		return;
	answers(g, after, sizeof(after));
	ktap(before[0] && !strcmp(before, after), "it gives the same answers");
	ktap(facts_read(g, in("f/values"), after, 9) == -ENODATA &&
	     facts_value(g, in("f/values"), "x", after, 9) == -ENODATA,
	     "what was not asked is ENODATA");
	facts_save(g, in("two.rec"));
	strcpy(before, slurp("one.rec"));
	ktap(!strcmp(before, slurp("two.rec")),
	     "written again it is the same");
	facts_close(g);
	ktap(facts_open(&f, in("none.rec")) == -ENOENT &&
	     strstr(facts_error(), "none.rec: No such file"),
	     "no such record: %s", facts_error());
	facts_open(&f, NULL);
	ktap(facts_save(f, in("none/x")) == -ENOENT,
	     "a record that cannot be written is an error");
	if (!access("/dev/full", W_OK)) {
		facts_text(f, in("f/text"), after, sizeof(after));
		ktap(facts_save(f, "/dev/full") == -ENOSPC,
		     "a full disk is an error");
	}
	facts_close(f);
}

static void t_left_out(void)
{
	char buf[4096];
	struct facts *f;
	const char *text;

	PUT("f/named", "on machine-7, not xmachine-7x\n");
	facts_open(&f, NULL);
	facts_text(f, in("f/ids"), buf, sizeof(buf));
	facts_text(f, in("f/serial"), buf, sizeof(buf));
	facts_text(f, in("f/net/address"), buf, sizeof(buf));
	facts_text(f, in("f/address"), buf, sizeof(buf));
	facts_text(f, in("f/dm/uuid"), buf, sizeof(buf));
	facts_text(f, in("f/named"), buf, sizeof(buf));
	facts_read(f, in("f/config"), buf, sizeof(buf));
	facts_save(f, in("ids.rec"));
	facts_close(f);
	text = slurp("ids.rec");
	ktap(!strstr(text, "S3CRET") && strstr(text, "serial is left out"),
	     "no serial numbers");
	ktap(!strstr(text, "n3t") && strstr(text, "f/address 0000:01:00.0\n"),
	     "no address of a network device, but PCI addresses");
	ktap(!!strstr(text, "f/dm/uuid LVM\n"), "what a mapping is, not which");
	ktap(!!strstr(text, "GPU-00000000-0000-0000-0000-000000000000 and"),
	     "no UUIDs");
	ktap(!!strstr(text, "and 00:00:00:00:00:00 or 0000:0000:0000:0000,"),
	     "no MAC addresses and GUIDs");
	ktap(!!strstr(text, "not 0000:01:00.0 nor xde:ad:be:ef:00:01"),
	     "but what looks a little like them");
	ktap(!!strstr(text, "on host, not xmachine-7x"), "no host name");
	ktap(strstr(text, "f/config de(255)01000115") && !strstr(text, "abab"),
	     "no PCI serial number");
}

static void t_malformed(void)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "line 0: the first line must be \"V 1\"" },
		{ "# nothing\n", "line 1: the first line must be \"V 1\"" },
		{ "V 2\n", "line 1: the first line must be" },
		{ "V 1", "line 1: no newline at the end" },
		{ "# x\nF /a b\n", "line 2: the first line must be" },
		{ "V 1\nV 1\n", "line 2: a line begins with F, X" },
		{ "V 1\nQ /a b\n", "line 2: a line begins with F, X" },
		{ "V 1\nF\n", "line 2: a line begins with F, X" },
		{ "V 1\nF/a\n", "line 2: a line begins with F, X" },
		{ "V 1\nF \n", "line 2: a path must begin with a slash" },
		{ "V 1\nF a b\n", "line 2: a path must begin with a slash" },
		{ "V 1\nF /a\\x00b c\n", "line 2: a path must begin with a" },
		{ "V 1\n\nF /a \t\n", "line 3: byte 0x09 must be written as" },
		{ "V 1\nF /a b\r\n", "line 2: byte 0x0d must be written as" },
		{ "V 1\nF /a \xc3\xa4\n", "line 2: byte 0xc3 must be written" },
		{ "V 1\nF /a \\\n", "line 2: \"\\\" must be followed by" },
		{ "V 1\nF /a \\q\n", "line 2: \"\\\" must be followed by" },
		{ "V 1\nF /a \\x1\n", "line 2: \"\\\" must be followed by" },
		{ "V 1\nF /a \\x1G\n", "line 2: \"\\\" must be followed by" },
		{ "V 1\nF /\\x b\n", "line 2: \"\\\" must be followed by" },
		{ "V 1\nX /a 012\n", "line 2: \"2\" is neither two digits" },
		{ "V 1\nX /a 0G\n", "line 2: \"0G\" is neither two digits" },
		{ "V 1\nX /a 01 02\n", "line 2: \" 0\" is neither two" },
		{ "V 1\nX /a 00(4\n", "line 2: \"(4\" is neither two" },
		{ "V 1\nX /a (-4)\n", "line 2: \"(-\" is neither two" },
		{ "V 1\nX /a ()\n", "line 2: \"()\" is neither two" },
		{ "V 1\nX /a (1048577)\n", "line 2: more than 1048576" },
		{ "V 1\nX /a 00(99999999999999999999)\n", "line 2: more" },
		{ "V 1\nL /a b\n", "line 2: a link's target must begin" },
		{ "V 1\nL /a\n", "line 2: a link's target must begin" },
		{ "V 1\nL /a /b\\x00\n", "line 2: a link's target must begin" },
		{ "V 1\nD /a b/c\n", "line 2: a name is empty, or has" },
		{ "V 1\nD /a b  c\n", "line 2: a name is empty, or has" },
		{ "V 1\nD /a b\\x00\n", "line 2: a name is empty, or has" },
		{ "V 1\nD /a c b\n", "line 2: \"b\" is not in order" },
		{ "V 1\nD /a b b\n", "line 2: \"b\" is not in order" },
		{ "V 1\nD /a \\z\n", "line 2: \"\\\" must be followed by" },
		{ "V 1\nE /a\n", "line 2: \"\" is no name of an error" },
		{ "V 1\nE /a ENOWAY\n", "line 2: \"ENOWAY\" is no name" },
		{ "V 1\nF /a 1\nF /a 2\n", "line 3: /a is there twice" },
		{ "V 1\nF /a 1\nX /a 02\n", "line 3: /a is there twice" },
	};
	struct facts *f;
	size_t i;
	int r;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		put("bad.rec", cases[i].text, strlen(cases[i].text));
		f = NULL;
		r = facts_open(&f, in("bad.rec"));
		ktap(r == -EBADMSG && !f &&
		     strstr(facts_error(), cases[i].says), "mistake %zu: %s", i,
		     facts_error());
		if (!r)
			facts_close(f);
	}
}

static void t_well_formed(void)
{
	char buf[64], **names = NULL;
	struct facts *f = NULL;
	int r;

	PUT("good.rec", "# c\n\nV 1\nF /f a\\\\b\\n\\x41 \nF /e\nX /x 00fF\n"
	    "L /f /t\nD /d\nD /n a\\x20b c\nE /x EIO\nE /g ENOENT\n"
	    "F /v#k 3\nE /w EACCES\n");
	r = facts_open(&f, in("good.rec"));
	ktap(r == -EBADMSG, "hex digits are lower case: %s", facts_error());
	PUT("good.rec", "# c\n\nV 1\nF /f a\\\\b\\n\\x41 \nF /e\nX /x 00ff\n"
	    "L /f /t\nD /d\nD /n a\\x20b c\nE /x EIO\nE /g ENOENT\n"
	    "F /v#k 3\nE /w EACCES\nX /z 01(9)(1)02\n");
	r = facts_open(&f, in("good.rec"));
	ktap(!r, "a good record: %s", facts_error());
	if (r)
		return;
	ktap(facts_read(f, "/f", buf, 64) == 6 && !memcmp(buf, "a\\b\nA ", 6),
	     "escapes");
	ktap(!facts_read(f, "/e", buf, 64) &&
	     !facts_text(f, "/e", buf, 64) && !buf[0], "an empty file");
	ktap(facts_read(f, "/x", buf, 64) == 2 && !memcmp(buf, "\0\xff", 2),
	     "bytes");
	ktap(facts_read(f, "/z", buf, 64) == 12 &&
	     !memcmp(buf, "\1\0\0\0\0\0\0\0\0\0\0\2", 12), "zeros");
	ktap(!facts_link(f, "/f", buf, 64) && !strcmp(buf, "/t"), "a link");
	ktap(!facts_list(f, "/d", &names) && !names[0], "an empty folder");
	facts_list_free(names);
	ktap(facts_list(f, "/n", &names) == 2 && !strcmp(names[0], "a b") &&
	     !strcmp(names[1], "c"), "names");
	facts_list_free(names);
	ktap(facts_link(f, "/x", buf, 64) == -EIO &&
	     facts_list(f, "/g", &names) == -ENOENT, "errors");
	ktap(!facts_value(f, "/v", "k", buf, 64) && !strcmp(buf, "3") &&
	     facts_value(f, "/v", "l", buf, 64) == -ENODATA &&
	     facts_value(f, "/w", "k", buf, 64) == -EACCES, "values");
	ktap(facts_list(f, "/f", &names) == -ENODATA, "what it does not say");
	facts_close(f);
}

static void t_too_large(void)
{
	struct facts *f = NULL;
	FILE *out = fopen(in("large.rec"), "w");
	size_t i;

	fputs("V 1\nF /a ", out);
	for (i = 0; i <= FACTS_VALUE_MAX; i++)
		putc('x', out);
	fputs("\n", out);
	fclose(out);
	ktap(facts_open(&f, in("large.rec")) == -EBADMSG &&
	     strstr(facts_error(), "line 2: more than 1048576 bytes"),
	     "a value that is too large");
	ktap(!truncate(in("large.rec"), FACTS_RECORD_MAX + 1) &&
	     facts_open(&f, in("large.rec")) == -EFBIG,
	     "a record that is too large: %s", facts_error());
	unlink(in("large.rec"));
}

/* Each call of a kind fails once; then the answers are the same as ever. */
static void t_faults(enum fault what, const char *name)
{
	static char before[65536], after[65536];
	unsigned int nth, refused = 0, wrong = 0;
	struct facts *f, *g = NULL;
	int r, kept;

	facts_open(&f, NULL);
	answers(f, before, sizeof(before));
	facts_close(f);
	for (nth = 1; nth < 2000; nth++) {
		faults_reset();
		fail_at[what] = nth;
		f = g = NULL;
		r = facts_open(&f, NULL);
		if (!r) {
			/* a failure is no answer: asked again, there is one */
			kept = answers(f, after, sizeof(after));
			if (kept && what != READ)
				kept = answers(f, after, sizeof(after));
			if (!kept && strcmp(before, after))
				wrong++;
			r = kept ? kept : facts_save(f, in("fault.rec"));
		}
		if (!r)
			r = facts_open(&g, in("fault.rec"));
		if (!r) {
			r = answers(g, after, sizeof(after));
			if (!r && strcmp(before, after))
				wrong++;
		}
		facts_close(f);
		facts_close(g);
		refused += !!r;
		fail_at[what] = 0;
		if (calls[what] < nth)
			break;
	}
	ktap(nth < 2000 && refused && !wrong,
	     "each %s failing: %u tried, %u refused, %u wrong", name, nth - 1,
	     refused, wrong);
}

static void t_interrupted(void)
{
	char buf[64];
	struct facts *f;

	facts_open(&f, NULL);
	read_error = EINTR;
	fail_at[READ] = calls[READ] + 1;
	ktap(!facts_text(f, in("f/text"), buf, sizeof(buf)),
	     "a read that was interrupted goes on");
	read_error = EIO;
	fail_at[READ] = 0;
	facts_close(f);
}

int main(void)
{
	if (!getcwd(here, sizeof(here)) || access("f", F_OK) == 0) {
		fprintf(stderr, "wants to run in an empty folder\n");
		return 1;
	}
	make_folder();
	t_live();
	t_symbols();
	t_round_trip();
	t_left_out();
	t_malformed();
	t_well_formed();
	t_too_large();
	t_faults(MALLOC, "allocation");
	t_faults(OPEN, "open");
	t_faults(READ, "read");
	t_interrupted();
	return ktap_end();
}
