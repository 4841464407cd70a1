# SPDX-License-Identifier: MIT
# docs/how-to/use-the-bundle.md as the bundle's README.md: the bundle has no other documents, so that a link to one becomes the
# name of its file in a checkout; a link to a part of the page stays
s,\[([^]]*)\]\(\.\./\.\./([^):]*)\),\1 (`\2` in a checkout),g
s,\[([^]]*)\]\(\.\./([^):]*)\),\1 (`docs/\2` in a checkout),g
s,\[([^]]*)\]\(([^)#:][^):]*)\),\1 (`docs/how-to/\2` in a checkout),g
