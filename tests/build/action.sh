#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the steps of action.yml and the script of the GitLab job do what they say, run as a runner does
# tags: build guest
# tier: nightly
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
# for who only looks at what is downloaded, and that it is unpacked
tar -cf small.tar bundle/bin
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
		IN_bundle=$OUT/archive.tar GH_server_url=https://example.com GH_action_repository=o/r
		for input; do
			export "IN_${input?}"
		done
		export IN_run IN_add IN_topology IN_hosts IN_kernel IN_direct IN_expect IN_timeout IN_bundle GH_server_url GH_action_repository
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
printf '%s\n' '#!/bin/sh' 'for last; do :; done' 'echo "$last" >"$OUT/url"' 'cp "$OUT/small.tar" "$5"' >fake/curl
# shellcheck disable=SC2016
printf '%s\n' '#!/bin/sh' 'echo "$MACHINE"' >fake/uname
chmod +x fake/*
# unpack MACHINE REPOSITORY: the first step, without a bundle's name
unpack() {
	rm -rf temp url
	env MACHINE="$1" OUT="$OUT" PATH="$OUT/fake:$PATH" RUNNER_TEMP="$OUT/temp" GITHUB_ACTION_PATH="$TOP" IN_bundle= \
		GH_server_url=https://example.com GH_action_repository="$2" sh -e step1 >unpacked.log 2>&1
}
version=$("$TOP/images/build/version")
for each in "x86_64 x86_64" "aarch64 arm64"; do
	unpack "${each% *}" o/r || diag "$(cat unpacked.log)"
	check_eq "the release's bundle for ${each% *}, whatever the action is pinned by" \
		"https://example.com/o/r/releases/download/v$version/peerlane-$version-${each#* }.tar.zst" "$(cat url)"
	check "it is unpacked" test -d temp/peerlane/bundle/bin
done
unpack x86_64 ""
check_eq "an action of the checkout needs a bundle's name" "2 No release has the bundle of an action in the checkout (uses: ./...): set the input bundle to a file or a URL" \
	"$? $(cat unpacked.log)"
check_false "… and nothing is downloaded" test -e url
printf '%s\n' '#!/bin/sh' 'echo "curl: (22) The requested URL returned error: 404" >&2' 'exit 22' >fake/curl
unpack x86_64 o/r
check_eq "a version that is not released" "2 The bundle cannot be downloaded from https://example.com/o/r/releases/download/v$version/peerlane-$version-x86_64.tar.zst: use a released version of the action, or set the input bundle to a file or a URL" \
	"$? $(tail -n 1 unpacked.log)"
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
# The third step is the runner's: it takes along what is in its folder, also where the second one has failed
sed -n '/^    - name: Keep the report$/,$s/^      *//p' "$TOP/action.yml" >step3
check "the third step keeps the report, also of a failure" sh -c 'grep -qx "if: always()" step3 && grep -qxE "uses: actions/upload-artifact@v[0-9]+" step3'
report=$(sed -n "s/^path: //p" step3 | sed "s|\${{ runner.temp }}|$OUT/temp|")
check "its folder has the result, the page, what was printed, and the console" test -s "$report/result.json" -a -s "$report/report.html" -a -s "$report/output.txt" -a -s "$report/console-guest.log"
check "the summary has the transfer" grep -qxF '| same-switch | my-program read | p2p | 1048576 | 0 |  |' summary
action "run=my-program 'test data/file'" "add=my-program
test data" direct=true "topology=same-switch two-root-ports" >staged.log 2>&1
check_eq "of two machines it is not direct on one: the step fails" 1 $? || diag "$(tail -n 20 staged.log)"
check "the result has both" jq -e '(.machines | map([.topology, .direct])) == [["same-switch", true], ["two-root-ports", false]]' "$report/result.json"
check_eq "so has the summary, and a console of each is kept" "2 2" \
	"$(grep -c '| my-program read |' summary) $(find "$report" -name 'console-*.log' -size +0 | wc -l)"
check "… and its report is kept, too" jq -e ".met == false" "$report/result.json"
check "the log says which condition is not met" grep -q 'not met on two-root-ports: .direct == true' staged.log
check "the summary says why" grep -q '^| two-root-ports | my-program read | bounce | 1048576 | 1048576 | p2p refused: ' summary
# shellcheck disable=SC2016 # of the guests
action 'run=echo "I am $HOST of $HOSTS"' hosts=2 >hosts.log 2>&1
check_eq "two hosts: the step passes" 0 $? || diag "$(tail -n 20 hosts.log)"
check_eq "the command has run on both" "a: I am a of 2 b: I am b of 2" "$(grep '^[a-z]: I am ' hosts.log | sort | xargs)"
check_eq "a console of each is kept, and none of an earlier step" "console-a.log console-b.log" "$(cd "$report" && echo console-*.log)"
action "run=sleep 60" timeout=5 >late.log 2>&1
check_eq "a machine that takes longer than the input timeout: the step fails" 124 $? || diag "$(tail -n 20 late.log)"
check "… says which limit it was" grep -q 'the machine reached the time limit of 5 s' late.log
check "… and keeps the console" test -s "$report/console-guest.log"
action run=true direct=yes >wrong.log 2>&1
check_eq "an input that is none" "2 direct is true or false, not \"yes\"" "$? $(tail -n 1 wrong.log)"

# The job of GitLab, as the guide has it: job1 and job2 are its before_script and script, in a folder with the repository's files
mkdir -p gitlab/build gitlab/testdata image
cp workspace/my-program gitlab/build/
cp "workspace/test data/file" gitlab/testdata/model.bin
awk '/^## / { job = /GitLab/ } !job { next }
	/^      before_script:$/ { to = "job1"; next } /^      script:$/ { to = "job2"; next }
	to && /^        - / { sub(/^        - /, ""); print >to; next }
	{ to = "" }
	/^        when: / { print $2 >"when" } /^        paths: / { gsub(/[][,]/, ""); for (i = 2; i <= NF; i++) print $i >"paths" }
	/^        PEERLANE: / { print $2 >"address" }' "$TOP/docs/how-to/use-in-ci.md"
check_eq "the guide has a job: what prepares it, a line of a script, two files as artefact" "2 1 2 always" "$(wc -l <job1) $(wc -l <job2) $(wc -l <paths) $(cat when)"
# The image of the job has no curl, and takes no archive of zstd, before apt-get has installed them
# shellcheck disable=SC2016 # of those programs
printf '%s\n' '#!/bin/sh' '[ "$1" = update ] || printf "%s\\n" "$@" >>"$OUT/installed"' >image/apt-get
# shellcheck disable=SC2016
printf '%s\n' '#!/bin/sh' 'grep -qx curl "$OUT/installed" && grep -qx ca-certificates "$OUT/installed" || exit 127' \
	'for last; do :; done' '[ "$last" = "$(cat "$OUT/address")" ] || exit 22' 'exec cat "$OUT/release.tar.zst"' >image/curl
# shellcheck disable=SC2016
printf '%s\n' '#!/bin/sh' 'grep -qx zstd "$OUT/installed" || exit 127' 'PATH=${PATH#*:} exec zstd "$@"' >image/zstd
chmod +x image/*
tar -C temp/peerlane --transform "s|^bundle|$(basename "$(cat address)" .tar.zst)|" -c bundle | zstd -q -1 -o release.tar.zst
at_exit 'rm -rf "$OUT/gitlab"/peerlane-* "$OUT/release.tar.zst"'
# job SCRIPT...: those of its scripts, one after the other
job() {
	(
		unset PEERLANE_IN_ROOT BUILD TOP
		export PEERLANE_CACHE="$OUT/temp/peerlane/cache" OUT PATH="$OUT/image:$PATH"
		PEERLANE=$(cat address)
		export PEERLANE
		cd gitlab || exit
		for script; do
			sh -e "../$script" || exit
		done
	) >gitlab.log 2>&1
}
job job1 job2
check_eq "it ends well" 0 $? || diag "$(tail -n 20 gitlab.log)"
check "its artefact says that the path was direct" jq -e '.met and .machines[0].direct' "gitlab/$(head -n 1 paths)"
check "… and shows it" grep -qF '<strong>1 run: 1 pass.</strong>' "gitlab/$(tail -n 1 paths)"

# The same job with a program whose data is staged. It fails, and what it keeps, "when: always", is there and says so
# shellcheck disable=SC2046 # names without blanks
(cd gitlab && rm $(cat ../paths))
cat >gitlab/build/my-program <<'END'
#!/bin/sh
CUFILE_FORCE_COMPAT_MODE=true exec peerlane io read --file "$1" --gpu 0 --size 1M
END
job job2
check_eq "where the path is not direct it fails" 1 $? || diag "$(tail -n 20 gitlab.log)"
check "its artefact says which condition is not met" jq -e '.met == false and .machines[0].direct == false and .machines[0].host_bytes == 1048576' "gitlab/$(head -n 1 paths)"
check "… and shows it" grep -qF '<strong>1 run: 1 fail.</strong>' "gitlab/$(tail -n 1 paths)"
finish
