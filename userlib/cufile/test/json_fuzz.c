// SPDX-License-Identifier: MIT
/*
 * Texts that are no cufile.json, or a strange one: good texts with random changes.
 * What is well formed json-c says, of the text without its comments; both must see
 * the same values in it.  What is in force afterwards is in range, and is what the
 * text says, or the file was refused with words.
 *
 *	cufile-json-fuzz [ROUNDS [FIRST SEED]]
 *
 * A seed says all about a round.
 */
/* Both have an enum of this name */
#define json_type json_c_type
#include <json-c/json.h>
#undef json_type
#include <float.h>
#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../internal.h"
#include "../json.h"
#include "test/child.h"

#define TEXTS	1500	/* of one round */
#define ROOM	(2 * MIB(1))
#define DEPTH	32	/* of values in values that the library takes */

static const char good[] =
	"// settings\n"
	"{\n"
	"  \"logging\": { \"dir\": \"/tmp/a b\", \"level\": \"WARN\" },\n"
	"  \"profile\": { \"nvtx\": false, \"cufile_stats\": 3 },\n"
	"  \"execution\": { \"max_io_queue_depth\": 64, \"max_io_threads\": 4,\n"
	"    \"parallel_io\": true, /* kept */ \"min_io_threshold_size_kb\": 8192 },\n"
	"  \"properties\": { \"max_direct_io_size_kb\": 1.6384e4,\n"
	"    \"max_device_cache_size_kb\": 131072, \"io_batchsize\": 128,\n"
	"    \"poll_mode_max_size_kb\": 4, \"use_poll_mode\": false,\n"
	"    \"allow_compat_mode\": true, \"force_compat_mode\": false,\n"
	"    \"posix_pool_slab_size_kb\": [4, 1024, 16384],\n"
	"    \"posix_pool_slab_count\": [128, 64, 64],\n"
	"    \"rdma_dev_addr_list\": [ ], \"max_batch_io_timeout_msecs\": 5 },\n"
	"  \"fs\": { \"generic\": { \"posix_unaligned_writes\": false },\n"
	"    \"lustre\": { \"posix_gds_min_kb\": 0 } },\n"
	"  \"denylist\": { \"drivers\": [ ], \"devices\": [\"/dev/sda\"],\n"
	"    \"mounts\": [ \"/\\u00e9\", \"/\xc3\xa9 \\ud83d\\ude00\" ],\n"
	"    \"filesystems\": [ \"nfs\" ] },\n"
	"  \"peerlane\": { \"strict\": false, \"window_size_kb\": 1024,\n"
	"    \"max_io_threads\": 3, \"page_cache\": false }\n"
	"}\n";

/* Where in the text something that config_load() tells is */
static const struct {
	const char *group, *key;
	unsigned int param;
} sizes[] = {
	{ "profile", "cufile_stats", CUFILE_PARAM_PROFILE_STATS },
	{ "execution", "max_io_queue_depth",
	  CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH },
	{ "properties", "max_direct_io_size_kb",
	  CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB },
	{ "properties", "max_device_cache_size_kb",
	  CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB },
	{ "properties", "io_batchsize", CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE },
	{ "properties", "poll_mode_max_size_kb",
	  CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB },
	{ "peerlane", "max_io_threads", CUFILE_PARAM_EXECUTION_MAX_IO_THREADS },
}, flags[] = {
	{ "properties", "use_poll_mode", CUFILE_PARAM_PROPERTIES_USE_POLL_MODE },
	{ "properties", "allow_compat_mode",
	  CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE },
	{ "properties", "force_compat_mode", CUFILE_PARAM_FORCE_COMPAT_MODE },
	{ "execution", "parallel_io", CUFILE_PARAM_EXECUTION_PARALLEL_IO },
};

static struct config standard;	/* without a file */
static uint64_t seed, state;
static char *text, *plain;
static size_t len;
static int file;
static unsigned int taken, refused;

static uint32_t dice(uint32_t sides)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 33) % sides;
}

/* ---- texts ---- */

/* @n bytes at @at, which may be in the text, in place of @gone there */
static void put(size_t at, size_t gone, const char *what, size_t n)
{
	char *copy;

	if (len - gone + n >= ROOM)
		return;
	copy = malloc(n + 1);
	memcpy(copy, what, n);
	memmove(text + at + n, text + at + gone, len - at - gone);
	memcpy(text + at, copy, n);
	len += n - gone;
	free(copy);
}

static void insert(size_t at, const char *s)
{
	put(at, 0, s, strlen(s));
}

static void add(const char *s)
{
	insert(len, s);
}

/* Something that is read as one or more tokens, or is none */
static const char *token(void)
{
	static const char *const tokens[] = {
		"{", "}", "[", "]", ",", ":", "\"", "\\", "/", "//", "/*", "*/",
		"\n", " ", "\t", "\r", "\f", "\v", "true", "false", "null", "True",
		"NaN", "Infinity", "-Infinity", "nan", "0", "-0", "00", "01",
		"-", "+1", "1.", ".5", "1.5", "0.3e1", "1e2", "1E+2", "12e-1",
		"1e", "1e+", "0e999", "1e400", "1e-400", "0x10", "4096", "1.28e2",
		"18446744073709551615", "18446744073709551616", "-9223372036854775809",
		"9007199254740993", "1e18", "123456789012345678901234567890",
		"0.000000000000000000000001e24", "4.0", "63.99999999999999",
		"\"\"", "\"a\"", "'a'", "\"\\", "\\u0000", "\\u00", "\\ud800",
		"\\udc00", "\\ud800\\u0041", "\\uD83D\\uDE00", "\\x", "\\/",
		"\xff", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xed\xa0\x80", "\xc0\x80",
		"\xef\xbb\xbf", "\x7f", "\x1f", "\"strict\":", "\"peerlane\":{},",
		"\"properties\":", "\"denylist\":[],", "\"properties.io_batchsize\":1,",
		"\"logging\":{\"level\":\"", "\"io_batchsize\":7,", "[[[[", "]]]]",
		"\"allow_compat_mode\":false,", "\"max_io_queue_depth\":1.0e1,",
	};

	return tokens[dice(sizeof(tokens) / sizeof(tokens[0]))];
}

static void change(void)
{
	size_t at = dice((uint32_t)len + 1), from = dice((uint32_t)len + 1);
	size_t n = dice(dice(4) ? 8 : 400);
	char byte = (char)dice(256);
	unsigned int i;

	if (n > len - at)
		n = len - at;
	switch (dice(12)) {
	case 0:
		if (n)
			text[at] = (char)(text[at] ^ (1 << dice(8)));
		break;
	case 1:
		put(at, dice(2) && at < len, &byte, 1);
		break;
	case 2:
		put(at, n, "", 0);
		break;
	case 3:		/* a piece again, somewhere else */
		put(from, 0, text + at, n);
		break;
	case 4:		/* cut off */
		len = at;
		break;
	case 5:
		byte = "[{\"/ 9"[dice(6)];
		for (i = dice(200); i; i--)
			put(at, 0, &byte, 1);
		break;
	case 6:		/* in place of the next number or word */
		while (at < len && !strchr("0123456789tfn", text[at]))
			at++;
		for (n = 0; at + n < len && text[at + n] &&
		     strchr("0123456789.eE+-truefalsn", text[at + n]); n++)
			continue;
		put(at, n, "", 0);
		/* fall through */
	case 7: case 8: case 9:
		insert(at, token());
		break;
	case 10:	/* a key again, in front of what is there */
		for (at = 0; at < len && text[at] != '{'; at++)
			continue;
		if (at < len && dice(2))
			insert(at + 1, "\"properties\":{\"io_batchsize\":9},");
		else if (at < len)
			insert(at + 1, "\"properties.io_batchsize\":9,");
		break;
	default:	/* a comment, perhaps in a string */
		insert(at, dice(2) ? "/* \" { */" : "// \"\n");
	}
}

static void any_value(unsigned int depth)
{
	unsigned int i, n = dice(4), kind = dice(depth < 40 ? 8 : 5);

	if (kind < 5) {
		static const char *const some[] = {
			"1", "-2.5e1", "true", "null", "\"x\\n\\u00e9\"",
		};

		add(some[kind]);
		return;
	}
	add(kind % 2 ? "[" : "{");
	for (i = 0; i < n; i++) {
		add(i ? " ,\n" : "");
		add(kind % 2 ? "" : dice(2) ? "\"a\":" : "\"properties\" : ");
		any_value(depth + (dice(3) ? 1 : 8));
	}
	add(kind % 2 ? "]" : "}");
}

static void make_text(void)
{
	unsigned int i, n, depth;

	len = 0;
	switch (dice(8)) {
	case 0:
		any_value(0);
		break;
	case 1:		/* about as deep as it may be */
		depth = DEPTH - 3 + dice(6);
		for (i = 0; i < depth; i++)
			add(dice(2) ? "[" : "{\"properties\":");
		add(dice(2) ? "" : "7");
		for (i = (unsigned int)len, n = 0; n < depth; n++) {
			while (text[--i] != '[' && text[i] != '{')
				continue;
			add(text[i] == '[' ? "]" : "}");
		}
		break;
	default:
		put(0, 0, good, sizeof(good) - 1);
	}
	for (n = dice(6); n; n--)
		change();
	if (!dice(300))		/* as long as a file may be, about */
		while (len < MIB(1) - 40 + dice(80))
			put(len, 0, " ", 1);
}

/* ---- what the text is ---- */

/* Blanks in place of comments: is each of them closed? */
static bool remove_comments(void)
{
	bool quoted = false;
	size_t i, end;

	memcpy(plain, text, len);
	plain[len] = '\0';
	for (i = 0; i < len; i++) {
		if (quoted && plain[i] == '\\') {
			i++;
		} else if (plain[i] == '"') {
			quoted = !quoted;
		} else if (!quoted && plain[i] == '/' && plain[i + 1] == '/') {
			while (i < len && plain[i] != '\n')
				plain[i++] = ' ';
		} else if (!quoted && plain[i] == '/' && plain[i + 1] == '*') {
			for (end = i + 2; end + 1 < len &&
			     (plain[end] != '*' || plain[end + 1] != '/'); end++)
				continue;
			if (end + 1 >= len)
				return false;
			memset(plain + i, ' ', end + 2 - i);
			i = end + 1;
		}
	}
	return true;
}

static long unit(const char *p)
{
	char hex[5] = { p[0], p[1], p[2], p[3] };

	return strtol(hex, NULL, 16);
}

/* Characters that no C string can have, and halves of characters */
static bool odd_escapes(void)
{
	const char *p;
	long u;

	for (p = plain; (p = strchr(p, '\\')); p += 2) {
		if (p[1] != 'u')
			continue;
		u = unit(p + 2);
		if (!u || (u >= 0xdc00 && u < 0xe000))
			return true;
		if (u < 0xd800 || u >= 0xdc00)
			continue;
		p += 6;
		if (p[0] != '\\' || p[1] != 'u' || unit(p + 2) < 0xdc00 ||
		    unit(p + 2) >= 0xe000)
			return true;
	}
	return false;
}

static unsigned int depth_of(struct json_object *o)
{
	unsigned int most = 0, n;
	size_t i;

	if (json_object_is_type(o, json_type_object)) {
		json_object_object_foreach(o, key, v) {
			(void)key;
			n = depth_of(v);
			most = n > most ? n : most;
		}
	} else if (json_object_is_type(o, json_type_array)) {
		for (i = 0; i < json_object_array_length(o); i++) {
			n = depth_of(json_object_array_get_idx(o, i));
			most = n > most ? n : most;
		}
	}
	return most + 1;
}

/*
 * json-c takes words and numbers that are none, as 1. and 00, and line ends in keys.
 * It takes neither bytes above 0x7f in strings, where it gets 0x7f, nor integers of
 * more than 64 bits, which it gets as other numbers.
 */
static bool odd_words(void)
{
	static const char pattern[] = "^(-?(0|[1-9][0-9]*)(\\.[0-9]+)?"
				      "([eE][-+]?[0-9]+)?|true|false|null)$";
	static const char others[] = "[]{},: \t\n\r";
	static regex_t *word;
	static regex_t compiled;
	bool quoted = false, odd = false;
	char *p, c;
	size_t n;

	if (!word && !regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB))
		word = &compiled;
	for (p = plain; *p && word && !odd; p++) {
		if (quoted && *p == '\\' && p[1]) {
			p++;
		} else if (*p == '"') {
			quoted = !quoted;
		} else if (quoted) {
			odd = (unsigned char)*p < ' ';
			*p = *p & 0x80 ? 0x7f : *p;
		} else if (!strchr(others, *p)) {
			n = strcspn(p, "[]{},: \t\n\r\"");
			c = p[n];
			p[n] = '\0';
			odd = regexec(word, p, 0, NULL, 0);
			p[n] = c;
			/* more than it takes for an integer */
			if (!odd && n > 18 && strspn(p, "-0123456789") == n)
				memcpy(p + n - 2, "e2", 2);
			p += n - 1;
		}
	}
	return odd || !word;
}

/* json-c's, or false: it is none, or one that the library must refuse all the same */
static bool is_json(struct json_object **out)
{
	struct json_tokener *tok;
	bool ok;

	*out = NULL;
	if (!remove_comments() || strlen(plain) != len || odd_words())
		return false;
	tok = json_tokener_new_ex(1000);
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
	*out = json_tokener_parse_ex(tok, plain, (int)len + 1);
	ok = json_tokener_get_error(tok) == json_tokener_success &&
	     !odd_escapes();
	json_tokener_free(tok);
	return ok;
}

/* ---- is it what the library sees? ---- */

/* Few digits, and a power of ten that a double has: then there is one right result */
static bool is_exact(const char *s)
{
	int digits = 0, behind = 0;
	bool point = false;

	for (; *s && *s != 'e' && *s != 'E'; s++) {
		digits += *s >= '0' && *s <= '9';
		behind += point && *s >= '0' && *s <= '9';
		point |= *s == '.';
	}
	behind -= *s ? (int)strtol(s + 1, NULL, 10) : 0;
	return digits <= 15 && behind <= 22 && behind >= -22;
}

static bool same_number(double a, struct json_object *o)
{
	const char *s = json_object_to_json_string(o);
	/* of the text, and not what fits into an integer */
	double b = strtod(s, NULL);

	if (json_object_is_type(o, json_type_int) &&
	    (fabs(a) >= 9e18 || fabs(b) >= 9e18))
		return fabs(a) >= 9e18 && fabs(b) >= 9e18;
	if (strlen(s) > 300 || a == b)
		return true;
	return !is_exact(s) && fabs(a - b) <= 1e-12 * fabs(b) + DBL_MIN;
}

/* @theirs has 0x7f for what json-c does not take */
static bool same_string(const char *ours, const char *theirs)
{
	while (*ours && (*ours == *theirs || (*ours & 0x80 && *theirs == 0x7f)))
		ours++, theirs++;
	return !*ours && !*theirs;
}

/* The last one with this key */
static const struct json *member(const struct json *j, const char *key,
				 bool (*is)(const char *ours, const char *key))
{
	const struct json *found = NULL, *child;

	for (child = j->child; child; child = child->next)
		if (is(child->key, key))
			found = child;
	return found;
}

static bool equal(const char *a, const char *b)
{
	return !strcmp(a, b);
}

static bool same(const struct json *j, struct json_object *o);

static bool same_object(const struct json *j, struct json_object *o)
{
	const struct json *child, *found;
	bool known;

	for (child = j->child; child; child = child->next) {
		known = false;
		json_object_object_foreach(o, each, unused) {
			(void)unused;
			known |= same_string(child->key, each);
		}
		if (!known)
			return false;
		/* what it finds by a path */
		if (child->key[0] && !strchr(child->key, '.') &&
		    json_find(j, child->key) != member(j, child->key, equal))
			return false;
	}
	json_object_object_foreach(o, key, v) {
		found = member(j, key, same_string);
		if (!found || !same(found, v))
			return false;
	}
	return true;
}

static bool same(const struct json *j, struct json_object *o)
{
	const struct json *child;
	size_t i = 0, n;

	switch (j->type) {
	case JSON_NULL:
		return !o;
	case JSON_BOOL:
		return json_object_is_type(o, json_type_boolean) &&
		       json_object_get_boolean(o) == j->boolean;
	case JSON_NUMBER:
		return (json_object_is_type(o, json_type_int) ||
			json_object_is_type(o, json_type_double)) &&
		       same_number(j->number, o);
	case JSON_STRING:
		return json_object_is_type(o, json_type_string) &&
		       same_string(j->string, json_object_get_string(o));
	case JSON_ARRAY:
		if (!json_object_is_type(o, json_type_array))
			return false;
		n = json_object_array_length(o);
		for (child = j->child; child; child = child->next)
			if (i >= n || !same(child,
					    json_object_array_get_idx(o, i++)))
				return false;
		return i == n;
	default:
		return json_object_is_type(o, json_type_object) &&
		       same_object(j, o);
	}
}

/* ---- what the library makes of it ---- */

static struct json_object *of(struct json_object *root, const char *group,
			      const char *key)
{
	struct json_object *v = NULL;

	if (!json_object_object_get_ex(root, group, &v) ||
	    !json_object_is_type(v, json_type_object) ||
	    !json_object_object_get_ex(v, key, &v))
		return NULL;
	return v;
}

static bool slabs_ok(const struct slabs *s)
{
	unsigned int i;

	for (i = 0; i < s->n && i < MAX_SLABS; i++)
		if (!s->kb[i] || s->kb[i] > 1 << 24 || !s->count[i] ||
		    s->count[i] > 65536)
			return false;
	return s->n && s->n <= MAX_SLABS;
}

static void check_config(struct config *cfg, struct json_object *root)
{
	struct json_object *v;
	unsigned int i;

	for (i = 0; i < 12; i++)
		CHECK(config_size_ok(i, cfg->size[i]));
	CHECK(slabs_ok(&cfg->slabs) && slabs_ok(&cfg->gpu_slabs));
	CHECK(cfg->window_kb >= 64 && cfg->window_kb <= 1 << 20);
	for (i = 0; i < 3; i++)
		CHECK(memchr(cfg->text[i], 0, sizeof(cfg->text[i])));
	CHECK(memchr(cfg->unknown, 0, sizeof(cfg->unknown)));
	CHECK(log_parse_level(cfg->text[CUFILE_PARAM_LOGGING_LEVEL]) >= 0);
	/* nobody looks into what has a point in its key */
	json_object_object_foreach(root, key, unused) {
		(void)unused;
		CHECK(!strchr(key, '.') || cfg->unknown[0]);
	}
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		v = of(root, sizes[i].group, sizes[i].key);
		CHECK(v ? same_number((double)cfg->size[sizes[i].param], v) :
			  cfg->size[sizes[i].param] ==
				  standard.size[sizes[i].param]);
	}
	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		v = of(root, flags[i].group, flags[i].key);
		CHECK(cfg->flag[flags[i].param] ==
		      (v ? (bool)json_object_get_boolean(v) :
			   standard.flag[flags[i].param]));
	}
}

static void show(void)
{
	size_t i;

	printf("# seed %llu: ", (unsigned long long)seed);
	for (i = 0; i < len && i < 3000; i++)
		printf(text[i] >= ' ' && text[i] <= '~' ? "%c" : "\\x%02x",
		       (unsigned char)text[i]);
	printf("\n");
}

static void one_text(void)
{
	char words[256] = "", *exact = malloc(len ? len : 1);
	struct json_object *tree;
	struct config cfg;
	bool is, loaded;
	struct json *j;

	/* reading on is seen */
	memcpy(exact, text, len);
	is = is_json(&tree);
	j = json_parse(exact, len, words, sizeof(words));
	CHECK(!j == !!words[0]);
	CHECK(j || !strncmp(words, "line ", 5));
	if (is && depth_of(tree) > DEPTH)
		CHECK(!j && strstr(words, "nested too deep"));
	else if (!is == !!j)
		CHECK(!"well formed for both, or for none");
	if (is && j)
		CHECK(same(j, tree));
	CHECK(ftruncate(file, 0) == 0 &&
	      pwrite(file, text, len, 0) == (ssize_t)len);
	words[0] = '\0';
	loaded = config_load(&cfg, words, sizeof(words));
	CHECK(loaded == !words[0]);
	CHECK(!loaded || (j && len <= MIB(1)));
	*(loaded ? &taken : &refused) += 1;
	if (loaded) {
		check_config(&cfg, tree);
		deny_free(&cfg.deny);
	}
	json_free(j);
	json_object_put(tree);
	free(exact);
}

static void round_of_texts(void)
{
	unsigned int i;

	state = seed * 2654435761u + 99;
	for (i = 0; i < TEXTS && !failed; i++) {
		make_text();
		one_text();
		if (failed)
			show();
	}
	/* A round in which all is refused, or nothing, tests little */
	CHECK(taken > TEXTS / 50 && refused > TEXTS / 50);
}

/* The text that the changes begin with says all that it seems to */
static void t_good(void)
{
	len = 0;
	put(0, 0, good, sizeof(good) - 1);
	one_text();
	CHECK(taken == 1);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 8;
	char words[256], name[40];

	seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
	clearenv();
	text = malloc(ROOM);
	plain = malloc(ROOM + 1);
	file = memfd_create("cufile.json", 0);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", file);
	setenv("CUFILE_ENV_PATH_JSON", name, 1);
	if (!text || !plain || file < 0 || pwrite(file, "{}", 2, 0) != 2 ||
	    !config_load(&standard, words, sizeof(words)))
		return 2;
	ktap(!in_child(t_good), "the text without changes");
	for (unsigned long i = 0; i < rounds; i++, seed++)
		ktap(!in_child(round_of_texts), "seed %lu", (unsigned long)seed);
	free(text);
	free(plain);
	return ktap_end();
}
