# SPDX-License-Identifier: MIT
#
# What conditions of scenarios are written with, and what judges them.  jq takes a
# missing number for the smallest one, for 0 in a sum, and all() of nothing for
# true; these helpers take it for an error.
#
#	n			the input, which must be a number
#	below(F; $max)		F gives numbers, one at least, and all are below $max
#	at_least(F; $min)	...  are $min or more
#	above(F; $min)		... are more than $min
#	sum(F)			F gives numbers, one at least; their sum
#	same(F; G)		F and G give the same, which is something, with no null in it
#	every(F)		F gives true, once at least, and nothing else
#	of($n; F)		F gives $n values; they are the output

def n: if type == "number" then . else error("not counted: \(tojson)") end;

def some(f): [f] | if . == [] then error("there is nothing of it") else . end;

def numbers_of(f): some(f | n);

def below(f; $max): ($max | n) as $max | numbers_of(f) | all(. < $max);

def at_least(f; $min): ($min | n) as $min | numbers_of(f) | all(. >= $min);

def above(f; $min): ($min | n) as $min | numbers_of(f) | all(. > $min);

def sum(f): numbers_of(f) | add;

def whole: if [.. | nulls] == [] then . else error("something is missing: \(tojson)") end;

def same(f; g): (some(f) | whole) == (some(g) | whole);

def every(f): some(f) | all(. == true);

def of($n; f): [f] | if length == $n then .[]
	else error("\(length) values instead of \($n)") end;

# The keys that a condition names: .key, .["key"], x["key"], and {key, key}; not those
# that it leaves out, del(.key)
def named_keys:
	(gsub("del\\([^)]*\\)"; "")
	 | gsub("(?<=[.\\])}\\w])\\[\"(?<k>[^\"]*)\"\\]"; ".\u0001\(.k)\u0001")
	 | gsub("\"[^\"]*\""; "\"\"")) as $bare |
	([$bare | scan("\\.\u0001([^\u0001]*)\u0001")[0]]
	 + [$bare | scan("\\.([A-Za-z_]\\w*)")[0]]
	 + [$bare | scan("\\{([\\w, ]+)\\}")[0] | scan("\\w+")])
	| unique;

# The keys that it makes itself: {key: ...}, and those of to_entries
def made_keys: [scan("[{,] *\"?([A-Za-z_]\\w*)\"?:")[0]]
	+ (if test("to_entries") then ["key", "value"] else [] end);

def without($key): walk(if type == "object" then del(.[$key]) else . end);

def holds(condition): try ([condition] == [true]) catch false;

# judge(CONDITION; $text, what it is written as): what is wrong with it, or nothing.
# A condition that holds has to fail as soon as a key that it names is nowhere in
# the result: one that does not has asked for nothing.
def judge(condition; $text):
	. as $result |
	if holds(condition) | not then
		"result: \([try condition catch "error: \(.)"] | map(tojson) | join(", "))"
	else
		($text | made_keys) as $made |
		($text | named_keys) as $keys |
		if $keys == [] then "it names no key of the result" else empty end,
		($keys[] as $key | ($result | without($key)) as $less |
		 if $less == $result then
			select($key | IN($made[]) | not)
			| "the result has no \"\($key)\", and it holds all the same"
		 else
			select($less | holds(condition))
			| "it holds without any \"\($key)\", too"
		 end)
	end;

# What the input can be instead, if something is wrong; $said: other texts
def wrong_values($said):
	. as $is
	| if type == "number" then 0, . + 1, . - 1, 2 * . + 1, (. / 2 | floor), 1e15 | select(. >= 0)
	elif type == "boolean" then not
	else $said[] end
	| select(. != $is);

# indifferent(CONDITION; $text): the keys that it needs, but whose values can be any others. Of several that are enough, all are wrong at once.
def indifferent(condition; $text):
	. as $result
	| ([.. | strings] + [$text | scan("\"([^\"]*)\"")[0]] + ["", "wrong"] | unique) as $said
	| def fails($path; $wrong): $result | setpath($path; $wrong) | holds(condition) | not;
	def needed: fails(.; null);
	def matters: . as $path | any($result | getpath($path) | wrong_values($said); . as $wrong | fails($path; $wrong));
	[paths(type | IN("number", "boolean", "string"))] | group_by([.[] | strings][-1])
	# the first that matters will do: some lists are long
	| map(select(any(.[]; needed and matters) | not) | map(select(needed)) | select(. != []))
	| select(reduce .[][] as $path ($result; getpath($path) |= first(wrong_values(["wrong"]))) | holds(condition))
	| .[][0] | [.[] | strings][-1];
