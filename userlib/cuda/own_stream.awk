# SPDX-License-Identifier: MIT
#
# Second symbols, for programs with per-thread default streams.  Reads lines
# "SUFFIX NAME(PARAMETERS)", writes for each a function that calls NAME while the
# thread's own stream is the default one.
{
	suffix = $1
	rest = substr($0, length(suffix) + 2)
	at = index(rest, "(")
	name = substr(rest, 1, at - 1)
	params = substr(rest, at)
	n = split(substr(params, 2, length(params) - 2), param, ",")
	args = ""
	for (i = 1; i <= n; i++) {
		match(param[i], /[A-Za-z0-9_]+ *$/)
		args = args (i > 1 ? ", " : "") substr(param[i], RSTART)
	}
	printf "CUresult %s_%s%s;\n", name, suffix, params
	printf "CUresult %s_%s%s\n{\n", name, suffix, params
	printf "\tbool before = drv_own_default;\n\tCUresult err;\n\n"
	printf "\tdrv_own_default = true;\n\terr = %s(%s);\n", name, args
	printf "\tdrv_own_default = before;\n\treturn err;\n}\n\n"
}
