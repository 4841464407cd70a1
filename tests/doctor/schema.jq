# SPDX-License-Identifier: MIT
# Checks an input by the JSON Schema $schema[0] (jq --slurpfile schema FILE): one line for each mistake.
# It knows the keywords that docs/reference/doctor.schema.json uses, and fails on any other.
def kind: type as $t | if $t == "number" and . == floor then "integer" else $t end;
def at($where): "\($where): " + .;
def mistakes($s; $where):
	($s | keys - ["$schema", "$comment", "$defs", "$ref", "title", "description", "type", "enum", "required",
		"properties", "additionalProperties", "items"]) as $odd
	| if $odd != [] then error("schema.jq does not know \($odd)") else . end
	| . as $v
	| if $s["$ref"] then mistakes($schema[0]["$defs"][$s["$ref"] | ltrimstr("#/$defs/")]; $where) else empty end,
	  (if $s.enum and ($s.enum | any(. == $v) | not) then "\($v) is none of \($s.enum)" | at($where) else empty end),
	  (if $s.type and ([$s.type] | flatten | index($v | kind) | not)
	   then "is of type \($v | kind), not \($s.type)" | at($where) else empty end),
	  (if ($v | type) == "object" then
		($s.required // [])[] as $k | select($v | has($k) | not) | "\($k) is missing" | at($where)
	   else empty end),
	  (if ($v | type) == "object" then
		$v | keys[] as $k
		| if ($s.properties // {})[$k] then .[$k] | mistakes($s.properties[$k]; "\($where).\($k)")
		  elif $s.additionalProperties == false then "\($k) is not in the schema" | at($where)
		  elif ($s.additionalProperties | type) == "object" then
			.[$k] | mistakes($s.additionalProperties; "\($where).\($k)")
		  else empty end
	   else empty end),
	  (if ($v | type) == "array" and $s.items then
		$v | keys[] as $i | .[$i] | mistakes($s.items; "\($where)[\($i)]")
	   else empty end);
mistakes($schema[0]; "")
