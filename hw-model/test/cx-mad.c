// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Asks QP1 of a port what the management of a class (4: of performance) is like there, by a datagram of management.
 *
 *	cx-mad DEVICE CLASS LID
 *
 * Prints "status STATUS capabilities MASK" of the answer, or why there is none.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <infiniband/umad.h>

#define MAD 256
#define GET 0x01
#define GET_RESPONSE 0x81
#define CLASS_PORT_INFO 0x0001
#define DATA 64			/* of a ClassPortInfo */
#define QP1_Q_KEY 0x80010000
#define WAIT 2000		/* ms for an answer */
#define TRIES 5

static void die(const char *what)
{
	printf("%s\n", what);
	exit(1);
}

int main(int argc, char **argv)
{
	int len = MAD, fd, agent;
	ib_user_mad_t *umad;
	uint8_t *mad, class;

	if (argc != 4)
		die("usage: cx-mad DEVICE CLASS LID");
	class = atoi(argv[2]);
	if (umad_init() < 0)
		die("umad_init");
	fd = umad_open_port(argv[1], 1);
	if (fd < 0)
		die("umad_open_port: is ib_umad loaded?");
	agent = umad_register(fd, class, 1, 0, NULL);
	umad = umad_alloc(1, umad_size() + MAD);
	if (agent < 0 || !umad)
		die("umad_register");
	mad = umad_get_mad(umad);
	mad[0] = 1;
	mad[1] = class;
	mad[2] = 1;
	mad[3] = GET;
	mad[15] = 77;			/* the transaction */
	mad[17] = CLASS_PORT_INFO;
	umad_set_addr(umad, atoi(argv[3]), 1, 0, QP1_Q_KEY);
	umad_set_pkey(umad, 0);
	if (umad_send(fd, agent, umad, MAD, WAIT, TRIES))
		die("umad_send");
	if (umad_recv(fd, umad, &len, (TRIES + 2) * WAIT) < 0)
		die("nothing comes");
	if (umad_status(umad))
		die("no answer");
	if (mad[1] != class || mad[3] != GET_RESPONSE || mad[15] != 77)
		die("another answer");
	printf("status 0x%02x%02x capabilities 0x%02x%02x\n", mad[4], mad[5], mad[DATA + 2], mad[DATA + 3]);
	return 0;
}
