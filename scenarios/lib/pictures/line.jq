# SPDX-License-Identifier: MIT
# line: a list as one line for awk, with tabs between the fields. @tsv would put backslashes before backslashes, which awk
# takes as they are. In a text, a tab or the end of a line is a blank.
def line: map(strings |= gsub("[\t\r\n]"; " ")) | join("\t");
