/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * peerlane-wire: arguments, and the loop.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "wire.h"

static const char usage_text[] =
"usage: peerlane-wire [--seed N] [--pcap] [--pcap-max BYTES] FOLDER NAME...\n"
"       peerlane-wire --ask FOLDER COMMAND...\n"
"\n"
"A switch with a port for each NAME.  Port N (from 1) is the Unix datagram\n"
"socket FOLDER/NAME; its host is FOLDER/NAME.host with the MAC address\n"
"52:54:00:00:00:0N.  For QEMU:\n"
"\n"
"  -netdev dgram,id=net0,local.type=unix,local.path=FOLDER/NAME.host,\n"
"          remote.type=unix,remote.path=FOLDER/NAME\n"
"\n"
"  --seed N          of the numbers that decide on loss and the like (default 1)\n"
"  --pcap            write FOLDER/NAME.pcap: what each host's cable carried\n"
"  --pcap-max BYTES  at most so much of each (default 256 MiB)\n"
"  --ask             give a running wire a command, print its answer (JSON);\n"
"                    the command \"help\" lists them\n"
"  --version         the version\n"
"\n"
"It ends on SIGTERM, and when what started it ends.\n";

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

uint64_t wire_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int wire_address(struct sockaddr_un *address, const char *folder,
		 const char *name, const char *suffix)
{
	int len;

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	len = snprintf(address->sun_path, sizeof(address->sun_path), "%s/%s%s",
		       folder, name, suffix);
	return len < (int)sizeof(address->sun_path) ? 0 : -ENAMETOOLONG;
}

int wire_bind(int type, const struct sockaddr_un *name)
{
	const struct sockaddr *address = (const struct sockaddr *)name;
	int fd = socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), probe, err;
	struct stat stat;

	if (fd < 0)
		return -errno;
	if (!bind(fd, address, sizeof(*name)))
		return fd;
	err = -errno;
	probe = socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (err == -EADDRINUSE && probe >= 0 && !lstat(name->sun_path, &stat) &&
	    S_ISSOCK(stat.st_mode) && connect(probe, address, sizeof(*name)) &&
	    errno == ECONNREFUSED)
		err = unlink(name->sun_path) || bind(fd, address, sizeof(*name)) ? -errno : 0;
	if (probe >= 0)
		close(probe);
	if (!err)
		return fd;
	close(fd);
	return err;
}

static int fail(const char *what, const char *detail)
{
	fprintf(stderr, "peerlane-wire: %s%s%s\n", what, detail ? ": " : "",
		detail ? detail : "");
	return 2;
}

bool wire_number(const char *text, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && !*end && !errno;
}

static int add_port(struct wire *wire, const char *name)
{
	struct wire_port *port = &wire->port[wire->ports];
	size_t len = strlen(name);

	if (wire->ports == WIRE_PORTS_MAX)
		return fail("more than 16 hosts", NULL);
	if (!len || len > WIRE_NAME_MAX ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != len)
		return fail("a name has 1 to 15 lower-case letters, digits and -", name);
	if (!strcmp(name, "all") || !strcmp(name, "control"))
		return fail("this name is taken", name);
	for (unsigned int i = 0; i < wire->ports; i++)
		if (!strcmp(name, wire->port[i].name))
			return fail("two hosts of one name", name);
	memcpy(port->name, name, len);
	memcpy(port->mac, "\x52\x54\0\0\0", 5);
	port->mac[5] = ++wire->ports;
	return 0;
}

/* Until a signal comes; -errno: it could not go on */
static int loop(struct wire *wire, const sigset_t *unblocked)
{
	struct pollfd fds[WIRE_PORTS_MAX + 1 + CONTROL_FDS];
	unsigned int n;

	while (!ended) {
		uint64_t now = wire_now(), next = control_waits(wire, now), due;
		struct timespec timeout;

		for (unsigned int i = 0; i < wire->ports; i++) {
			due = port_send(wire, &wire->port[i], now);
			if (due < next)
				next = due;
		}
		for (unsigned int i = 0; i < wire->ports; i++) {
			struct wire_port *port = &wire->port[i];

			fds[i].events = (port_reads(wire, port, now, &next) ? POLLIN : 0) |
				(port->blocked_since ? POLLOUT : 0);
			/* errors of one that is asked for nothing would come again and again */
			fds[i].fd = fds[i].events ? port->fd : -1;
		}
		fds[wire->ports] = (struct pollfd){ .fd = wire->watch, .events = POLLIN };
		n = wire->ports + 1;
		n += control_poll(wire, fds + n);
		now = wire_now();
		due = next > now ? next - now : 0;
		timeout = (struct timespec){ due / 1000000000, due % 1000000000 };
		if (ppoll(fds, n, next == UINT64_MAX ? NULL : &timeout,
			  unblocked) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (fds[wire->ports].revents)
			port_look(wire);
		for (unsigned int i = 0; i < wire->ports; i++) {
			if (fds[i].revents & (POLLOUT | POLLERR | POLLHUP))
				wire->port[i].blocked_since = 0;
			if (fds[i].revents || wire->port[i].former)
				port_receive(wire, &wire->port[i]);
		}
		control_serve(wire, fds + wire->ports + 1, n - wire->ports - 1);
	}
	return 0;
}

int main(int argc, char **argv)
{
	enum { SEED = 1, PCAP, PCAP_MAX, ASK, VERSION, HELP };
	static const struct option options[] = {
		{ "seed", required_argument, NULL, SEED },
		{ "pcap", no_argument, NULL, PCAP },
		{ "pcap-max", required_argument, NULL, PCAP_MAX },
		{ "ask", no_argument, NULL, ASK },
		{ "version", no_argument, NULL, VERSION },
		{ "help", no_argument, NULL, HELP },
		{ 0 }
	};
	static struct wire wire = { .seed = 1, .deaf_ns = WIRE_DEAF * 1000000000ull,
				    .pcap_max = 256 << 20, .listener = -1, .watch = -1 };
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
	struct sigaction action = { .sa_handler = end }, old;
	pid_t parent = getppid();
	unsigned int ports = 0;
	sigset_t blocked, before;
	bool ask = false;
	int option, null, err = 0;

	while ((option = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		switch (option) {
		case SEED:
			if (!wire_number(optarg, &wire.seed))
				return fail("--seed needs a number", optarg);
			break;
		case PCAP:
			wire.pcap = true;
			break;
		case PCAP_MAX:
			if (!wire_number(optarg, &wire.pcap_max))
				return fail("--pcap-max needs a number of bytes", optarg);
			break;
		case ASK:
			ask = true;
			break;
		case VERSION:
			puts("peerlane-wire " PLN_WIRE_VERSION);
			return 0;
		case HELP:
		case 'h':
			fputs(usage_text, stdout);
			return 0;
		default:
			return 2;
		}
	}
	if (argc - optind < 2) {
		fputs(usage_text, stderr);
		return 2;
	}
	wire.folder = argv[optind++];
	if (ask)
		return control_ask(wire.folder, argc - optind, argv + optind);
	while (optind < argc) {
		err = add_port(&wire, argv[optind++]);
		if (err)
			return err;
	}

	/* no socket takes the place of a standard stream that is closed */
	do
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (null >= 0 && null <= STDERR_FILENO);
	close(null);

	/* signals come while it polls, and at no other time */
	sigemptyset(&blocked);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		sigaddset(&blocked, signals[i]);
		sigaction(signals[i], NULL, &old);
		/* nohup, and background jobs of a shell, have some ignored */
		if (signals[i] == SIGTERM || old.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	}
	sigprocmask(SIG_BLOCK, &blocked, &before);
	sigdelset(&before, SIGTERM);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		return fail("what started it has ended", NULL);

	port_seed(&wire);
	while (ports < wire.ports && !err) {
		err = port_open(&wire, &wire.port[ports]);
		if (err)
			fail(strerror(-err), wire.port[ports].name);
		else
			ports++;
	}
	if (!err) {
		err = port_watch(&wire);
		if (err)
			fail(strerror(-err), "inotify, which tells when a host has come again; perhaps fs.inotify.max_user_instances or max_user_watches is too low");
	}
	if (!err) {
		err = control_open(&wire);
		if (err)
			fail(strerror(-err), "control");
	}
	if (!err) {
		/* who started it may wait for this line */
		puts("ready");
		fflush(stdout);
		err = loop(&wire, &before);
		if (err)
			fail(strerror(-err), "poll");
	}
	control_close(&wire);
	while (ports)
		port_close(&wire, &wire.port[--ports]);
	return err ? 2 : 0;
}
