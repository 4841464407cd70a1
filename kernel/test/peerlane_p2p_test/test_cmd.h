/* SPDX-License-Identifier: GPL-2.0-only */
/* The file "cmd" of a test module: one command for each write. */
#ifndef _TEST_CMD_H
#define _TEST_CMD_H

#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#define TEST_CMD_MAX	128
#define TEST_VERB_MAX	8

static inline ssize_t test_cmd_run(const char __user *from, size_t count,
				   int (*run)(char *cmd))
{
	char *buf;
	int ret;

	if (count > TEST_CMD_MAX)
		return -E2BIG;
	buf = memdup_user_nul(from, count);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	ret = run(strim(buf));
	kfree(buf);
	return ret ? ret : count;
}

/* "VERB SLOT ARGUMENTS": the arguments; NULL when it is something else */
static inline char *test_cmd_parse(char *cmd, char verb[TEST_VERB_MAX],
				   unsigned int *slot, unsigned int nr_slots)
{
	int at = 0;

	if (sscanf(cmd, "%7s %u%n", verb, slot, &at) != 2 || *slot >= nr_slots)
		return NULL;
	return skip_spaces(cmd + at);
}

#define DEFINE_TEST_CMD(name, run)					\
static ssize_t name##_write(struct file *file, const char __user *from,	\
			    size_t count, loff_t *pos)			\
{									\
	return test_cmd_run(from, count, run);				\
}									\
									\
static const struct file_operations name##_fops = {			\
	.owner = THIS_MODULE,						\
	.open = simple_open,						\
	.write = name##_write,						\
}

#endif /* _TEST_CMD_H */
