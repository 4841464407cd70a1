#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the steps of action.yml and the script of the GitLab job do what they say, run as a runner does
# tags: build guest
# tier: all
# timeout: 1200

. "$TOP/scenarios/lib/case.sh"
need_tool jq cc
need_file "$BUILD/qemu/qemu-system-x86_64" "$BUILD/guest/7.2/overlay.cpio"

# The scripts of the steps, step1 and so on: what stands in their env as exports, then what stands below run. Of expressions
# the runner's are ${{ inputs.NAME }} and ${{ github.NAME }}; here they are variables IN_NAME and GH_NAME.
awk '
	function value(text) {
		gsub(/\$[{][{] inputs[.]/, "${IN_", text)
		gsub(/\$[{][{] github[.]/, "${GH_", text)
		gsub(/ [}][}]/, "}", text)
		return text
	}
	/^    - name: / { step = "step" ++n; body = 0; env = 0; next }
	!n { next }
	/^      shell: / { print $2 >(step ".shell") }
	/^      env:$/ { env = 1; next }
	/^      run: [|]$/ { body = 1; env = 0; next }
	env && /^        [A-Z]+: / {
		name = $1
		sub(/:/, "", name)
		text = $0
		sub(/^ *[A-Z]+: /, "", text)
		printf "export %s=\"%s\"\n", name, value(text) >step
		next
	}
	body && /^(        |$)/ { print substr($0, 9) >step; next }
	/^      [a-z]/ { body = 0; env = 0 }' "$TOP/action.yml"
check_eq "two of three steps are scripts, for sh" "sh sh" "$(cat step1.shell step2.shell | xargs)"
check_false "the third uses an action" test -e step3
check_eq "no expression is left in them" "" "$(grep -hF '{{' step1 step2)"
for step in step1 step2; do
	check "$step can be read" sh -n "$step"
done

# the defaults of the inputs
awk '/^inputs:/ { in_it = 1; next } /^[a-z]/ { in_it = 0 }
	in_it && /^  [a-z]+:$/ { name = $1; sub(/:/, "", name) }
	in_it && /^    default: / { sub(/^    default: /, ""); gsub(/"/, ""); printf "IN_%s=\"%s\"\n", name, $0 }' "$TOP/action.yml" >defaults
check_eq "all inputs but the command have one" 9 "$(wc -l <defaults)"

at_exit 'rm -rf "$OUT/bundle" "$OUT/archive.tar" "$OUT/temp"'
check "there is a bundle" "$TOP/images/bundle/make-bundle" --folder bundle || finish
tar -cf archive.tar bundle
rm -rf bundle

# the runner: sh -e FILE, in the workspace
action() { # INPUT=VALUE...
	mkdir -p temp workspace
	: >output
	: >summary
	(
		# shellcheck source=/dev/null
		. ./defaults
		# shellcheck disable=SC2034 # the steps use it
		IN_bundle=$OUT/archive.tar GH_server_url=https://example.com GH_action_repository=o/r GH_action_ref=v0
		for input; do
			export "IN_${input?}"
		done
		export IN_run IN_add IN_topology IN_hosts IN_kernel IN_direct IN_expect IN_timeout IN_bundle GH_server_url GH_action_repository GH_action_ref
		export RUNNER_TEMP="$OUT/temp" GITHUB_OUTPUT="$OUT/output" GITHUB_STEP_SUMMARY="$OUT/summary"
		unset PEERLANE_IN_ROOT PEERLANE_CACHE BUILD TOP
		cd workspace || exit
		[ -d "$RUNNER_TEMP/peerlane/bundle/bin" ] || sh -e "$OUT/step1" || exit 90
		sh -e "$OUT/step2"
	)
}

# What it takes when nobody names a bundle, by the runner's processor
mkdir fake
# shellcheck disable=SC2016
printf '%s\n' '#!/bin/sh' 'for last; do :; done' 'echo "$last" >"$OUT/url"' 'cp "$OUT/archive.tar" "$5"' >fake/curl
# shellcheck disable=SC2016
printf '%s\n' '#!/bin/sh' 'echo "$MACHINE"' >fake/uname
chmod +x fake/*
for each in "x86_64 x86_64" "aarch64 arm64"; do
	rm -rf temp
	env MACHINE="${each% *}" OUT="$OUT" PATH="$OUT/fake:$PATH" RUNNER_TEMP="$OUT/temp" IN_bundle= GH_server_url=https://example.com \
		GH_action_repository=o/r GH_action_ref=v0.1.0 sh -e step1 >unpacked.log 2>&1 || diag "$(cat unpacked.log)"
	check_eq "the release's bundle for ${each% *}" "https://example.com/o/r/releases/download/v0.1.0/peerlane-0.1.0-${each#* }.tar.zst" "$(cat url)"
	check "it is unpacked" test -d temp/peerlane/bundle/bin
done
rm -rf temp

mkdir -p "workspace/test data"
head -c 1048576 /dev/urandom >"workspace/test data/file"
cp "$TOP/userlib/examples/cufile-read.c" my-program.c
check "a program is built" cc -D_GNU_SOURCE -o workspace/my-program my-program.c -I"$TOP/userlib/cufile" -I"$TOP/userlib/cuda" -I"$TOP/userlib/include" \
	-L"$BUILD/userlib" -l:libcufile.so.0 -l:libcuda.so.1
action "run=my-program 'test data/file'" "add=my-program
test data" direct=true "expect=.bytes == 1048576
.host_bytes == 0" >direct.log 2>&1
check_eq "the path is direct: the step passes" 0 $? || diag "$(tail -n 20 direct.log)"
check "the result is where the output says" jq -e '.met and (.expect | length) == 3' "$(sed -n 's/^result=//p' output)"
check "the report has what was printed, and the console" test -s temp/peerlane/report/output.txt -a -s temp/peerlane/report/console-guest.log
check "the summary has the transfer" grep -qxF '| same-switch | my-program read | p2p | 1048576 | 0 |  |' summary
action "run=my-program 'test data/file'" "add=my-program
test data" direct=true topology=two-root-ports >staged.log 2>&1
check_eq "it is not: the step fails" 1 $? || diag "$(tail -n 20 staged.log)"
check "the log says which condition is not met" grep -q 'not met on two-root-ports: .direct == true' staged.log
check "the summary says why" grep -q '^| two-root-ports | my-program read | bounce | 1048576 | 1048576 | p2p refused: ' summary
action run=true direct=yes >wrong.log 2>&1
check_eq "an input that is none" "2 direct is true or false, not \"yes\"" "$? $(tail -n 1 wrong.log)"

# The job of GitLab: its script as the guide has it, where its before_script has unpacked the bundle
mkdir -p gitlab/build gitlab/testdata
cp workspace/my-program gitlab/build/
cp "workspace/test data/file" gitlab/testdata/model.bin
ln -s "$OUT/temp/peerlane/bundle" gitlab/peerlane-0.1.0-x86_64
awk '/^## / { job = /GitLab/ } job && /^      script:$/ { body = 1; next } body && /^        - / { sub(/^        - /, ""); print; next } { body = 0 }' \
	"$TOP/docs/how-to/use-in-ci.md" >gitlab/script
check_eq "the guide has a job with one line of a script" 1 "$(wc -l <gitlab/script)"
(
	unset PEERLANE_IN_ROOT BUILD TOP
	export PEERLANE_CACHE="$OUT/temp/peerlane/cache"
	cd gitlab && sh -e script
) >gitlab.log 2>&1
check_eq "it ends well" 0 $? || diag "$(tail -n 20 gitlab.log)"
check "its artefact says that the path was direct" jq -e '.met and .machines[0].direct' gitlab/result.json
finish
