// SPDX-License-Identifier: MIT
/* The reader of JSON: what it takes, what it refuses, and never more. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

static unsigned int checks, failed;

static void check(int good, const char *what)
{
	checks++;
	if (!good)
		failed++;
	printf("%sok %u - %s\n", good ? "" : "not ", checks, what);
}

static struct json *parse(const char *text, char *err)
{
	/* a copy of the exact size, so that reading on is seen by ASan */
	size_t n = strlen(text);
	char *copy = malloc(n ? n : 1);
	struct json *j;

	memcpy(copy, text, n);
	j = json_parse(copy, n, err, 128);
	free(copy);
	return j;
}

static int refuses(const char *text, const char *words)
{
	char err[128] = "";
	struct json *j = parse(text, err);

	json_free(j);
	if (j || !strstr(err, words))
		printf("# %s: %s\n", text, j ? "was taken" : err);
	return !j && strstr(err, words);
}

/* Many strings take memory for what is in them, not for the rest of the text */
static void big(void)
{
	enum { N = 5000 };
	char *text = malloc(N * 12 + 3), *p = text, err[128];
	struct mallinfo2 before, after;
	struct json *j;
	int i;

	for (i = 0; i < N; i++)
		p += sprintf(p, "%c\"%08d\"", i ? ',' : '[', i);
	*p++ = ']';
	before = mallinfo2();
	j = json_parse(text, (size_t)(p - text), err, sizeof(err));
	after = mallinfo2();
	check(j && j->child && !strcmp(j->child->string, "00000000"),
	      "takes many strings");
	check(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd <
	      N * 200, "in little memory");
	json_free(j);
	free(text);
}

int main(void)
{
	static const char *const bad[][2] = {
		{ "", "ends here" }, { "{", "key in quotes" },
		{ "{\"a\"", "colon" }, { "{\"a\":}", "not a value" },
		{ "{\"a\":1", "closing bracket" }, { "[1,]", "not a value" },
		{ "{\"a\":1,}", "key in quotes" }, { "[1 2]", "comma" },
		{ "\"abc", "without an end" }, { "\"a\\", "without an end" },
		{ "\"\\x\"", "bad escape" }, { "\"\\u12\"", "bad escape" },
		{ "\"\\ud800\"", "bad escape" }, { "\"\\udc00\"", "bad escape" },
		{ "\"\\u0000\"", "bad escape" },
		{ "tru", "not a value" }, { "nul", "not a value" },
		{ "-", "not a value" }, { "01", "leading zero" },
		{ "1.", "after the point" }, { "1e", "exponent" },
		{ "1 x", "after the end" }, { "/* abc", "without an end" },
		{ "\n\n@", "line 3" }, { "\"a\nb\"", "without an end" },
	};
	char err[128], deep[200], text[512];
	const struct json *f;
	struct json *j;
	unsigned int i, cut;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "refuses case %u, with words", i);
		check(refuses(bad[i][0], bad[i][1]), text);
	}
	memset(deep, '[', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	check(refuses(deep, "too deep"), "bounds the depth");

	j = parse("// c\n{ \"a\": {\"b\": [1, -2.5e1, true, null]}, /* x */\n"
		  "\"s\": \"\\u00e9\\ud83d\\ude00\\n\", \"t\": false }", err);
	check(j != NULL, "takes comments, numbers, words, lists");
	f = json_find(j, "a.b");
	check(f && f->type == JSON_ARRAY && f->child->number == 1 &&
	      f->child->next->number == -25 &&
	      f->child->next->next->boolean &&
	      f->child->next->next->next->type == JSON_NULL, "finds by path");
	f = json_find(j, "s");
	check(f && !strcmp(f->string, "\xc3\xa9\xf0\x9f\x98\x80\n"),
	      "escapes become UTF-8");
	check(!json_find(j, "a.c") && !json_find(j, "s.x") &&
	      !json_find(j, "aa"), "absent is absent");
	json_free(j);

	j = parse("[0.3e1, 1.28e2, 12e-1, 1e400, 0e999, 0.07e2, 4096.000]", err);
	f = j ? j->child : NULL;
	check(f && f->number == 3 && f->next->number == 128 &&
	      f->next->next->number == 1.2 && f->next->next->next->number > 1e308 &&
	      f->next->next->next->next->number == 0 &&
	      f->next->next->next->next->next->number == 7 &&
	      f->next->next->next->next->next->next->number == 4096,
	      "a number is the nearest one");
	json_free(j);
	j = parse("{\"a\":{\"b\":1,\"c\":1},\"a\":{\"b\":2,\"b\":3}}", err);
	f = json_find(j, "a.b");
	check(f && f->number == 3 && !json_find(j, "a.c"),
	      "of several with one key it finds the last");
	json_free(j);

	/* every prefix of a good text is refused, and nothing is read beyond */
	strcpy(text, "{\"a\":{\"b\":[1,-2.5e1,true,null,\"x\\u00e9\"]},\"c\":"
	       "false}");
	for (cut = 0; cut < strlen(text); cut++) {
		char part[512];

		memcpy(part, text, cut);
		part[cut] = '\0';
		j = parse(part, err);
		if (j)
			break;
	}
	json_free(cut < strlen(text) ? j : NULL);
	check(cut == strlen(text), "refuses every beginning of a good text");
	big();
	printf("1..%u\n", checks);
	return failed ? 1 : 0;
}
