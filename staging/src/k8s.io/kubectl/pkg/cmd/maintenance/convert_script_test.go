/*
Copyright 2026 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package maintenance

import (
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// describeCommand writes a command as "LINE: WORD|WORD". A word that is expanded ends in "...", a
// conditional command in " ?".
func describeCommand(command shellCommand) string {
	var words []string
	for _, word := range command.words {
		text := word.text
		if word.expanded {
			text += "..."
		}
		words = append(words, text)
	}
	if command.text != "" {
		return fmt.Sprintf("%d: %s (text)", command.line, command.text)
	}
	text := fmt.Sprintf("%d: %s", command.line, strings.Join(words, "|"))
	if command.conditional {
		text += " ?"
	}
	return text
}

func TestReadShell(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		want   []string
	}{
		"empty":                      {"", nil},
		"only comments":              {"#!/bin/sh\n# kubectl drain a\n", nil},
		"words":                      {"kubectl  drain\tfoo\n", []string{"1: kubectl|drain|foo"}},
		"comments":                   {"a b # c\nd#e # f", []string{"1: a|b", "2: d#e"}},
		"separators":                 {"a;b&c|d\ne|&f", []string{"1: a", "1: b", "1: c", "1: d", "2: e", "2: f"}},
		"conditions":                 {"a && b || c\nd", []string{"1: a ?", "1: b ?", "1: c ?", "2: d"}},
		"if":                         {"if a; then\nb\nelse c; fi\nd", []string{"1: a ?", "2: b ?", "3: c ?", "4: d"}},
		"loops":                      {"for x in a b; do\nc $x\ndone\nwhile a; do b; done; d", []string{"2: c|$x... ?", "4: a ?", "4: b ?", "4: d"}},
		"case":                       {"case $x in\na) b;;\n*) c;;\nesac\nd", []string{"2: a ?", "2: b ?", "3: *... ?", "3: c ?", "5: d"}},
		"functions":                  {"f() { a b; }\nf", []string{"1: f", "1: a|b", "2: f"}},
		"subshell":                   {"(cd x; a)", []string{"1: cd|x", "1: a"}},
		"groups":                     {"{ a; b\n}", []string{"1: a", "1: b"}},
		"negation":                   {"! a b", []string{"1: a|b"}},
		"single quotes":              {`a 'b $c "d' e`, []string{`1: a|b $c "d|e`}},
		"double quotes":              {`a "b 'c" d"e"f ""`, []string{"1: a|b 'c|def|"}},
		"double quotes, escapes":     {`a "\$b \"c\" \n"`, []string{`1: a|$b "c" \n`}},
		"escapes":                    {`a b\ c \$d`, []string{"1: a|b c|$d"}},
		"continued lines":            {"a b \\\n  c\nd", []string{"1: a|b|c", "3: d"}},
		"variables":                  {`a $b "${c}" x$d'e' $1`, []string{"1: a|$b...|${c}...|x$de...|$1..."}},
		"substitutions":              {"a $(b \"c)\" $(d)) `e f`", []string{"1: d", "1: b|c)|$(d)...", "1: e|f", "1: a|$(b \"c)\" $(d))...|`e f`..."}},
		"escaped backquotes":         {"a `b \\`c\\` d` e", []string{"1: b|`c`|d", "1: a|`b \\`c\\` d`...|e"}},
		"substitution in quotes":     {`a "$(b c)"`, []string{"1: b|c", "1: a|$(b c)..."}},
		"patterns":                   {"a b* c? d[1] '*' {x,y} e{1..3} -I{} ~/b c~", []string{"1: a|b*...|c?...|d[1]...|*|{x,y}...|e{1..3}...|-I{}|~/b...|c~"}},
		"redirections":               {"a >b 2>&1 <c >>d &>e f 2>/dev/null", []string{"1: a|f"}},
		"here-document":              {"a <<END b\nc\nEND\nd", []string{"1: a|b", "4: d"}},
		"here-document with a drain": {"a <<END b\n# x\n kubectl drain c\nEND\nd", []string{"1: a|b", "3: kubectl drain c (text)", "5: d"}},
		"here-document, quoted":      {"a <<'END'\nb\nEND\nc", []string{"1: a", "4: c"}},
		"here-document with tabs":    {"a <<-END\n\tb\n\tEND\nc", []string{"1: a", "4: c"}},
		"two here-documents":         {"a <<X <<Y\nb\nX\nc\nY\nd", []string{"1: a", "6: d"}},
		"here-document without end":  {"a <<X\nb", []string{"1: a"}},
		"here-string":                {"a <<<b c", []string{"1: a|c"}},
		"process substitution":       {"a <(b c)", []string{"1: a|...", "1: b|c"}},
		"lines in quotes":            {"a 'b\nc'\nd", []string{"1: a|b\nc", "3: d"}},
		"carriage returns":           {"a b\r\nc\r\n", []string{"1: a|b", "2: c"}},
	} {
		t.Run(name, func(t *testing.T) {
			commands, err := readShell(tc.script)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, command := range commands {
				got = append(got, describeCommand(command))
			}
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadShellErrors(t *testing.T) {
	for script, want := range map[string]string{
		"a\n'b":      "line 2: ' is not closed",
		"a \"b\n":    `line 2: " is not closed`,
		"a $(b":      "line 1: $( is not closed",
		"a `b":       "line 1: ` is not closed",
		"a ${b":      "line 1: ${ is not closed",
		"x=\"$(a 'b": "line 1: $( is not closed",
	} {
		if _, err := readShell(script); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", script, err, want)
		}
	}
}

// A command that changes nothing becomes a maintenance that changes nothing, whoever would have
// computed what it does.
func TestConvertDryRun(t *testing.T) {
	for flag, want := range map[string]string{
		"": "Drain", "--dry-run=none": "Drain", "--dry-run": "Idle", "--dry-run=client": "Idle", "--dry-run=server": "Idle",
		"--dry-run=client --pod-selector=a=b": "Idle",
	} {
		written, said, s := convertText(t, "a.sh", "kubectl drain node-1 "+flag)
		if s.code != 0 || !strings.Contains(written, "  stage: "+want+"\n") {
			t.Errorf("%q: exit code %d, wrote %q, said %q, want the stage %s", flag, s.code, written, said, want)
		}
	}
}

// A flag whose value says what kubectl does without it is not reported.
func TestConvertNeutralFlags(t *testing.T) {
	for _, flag := range []string{"--timeout=0s", "--grace-period=-1", "--skip-wait-for-delete-timeout=0", "--dry-run=none", "--disable-eviction=false"} {
		if _, said, s := convertText(t, "a.sh", "kubectl drain node-1 "+flag); s.code != 0 || strings.Contains(said, strings.TrimSuffix(flag, "=false")) {
			t.Errorf("%s: exit code %d, said %q", flag, s.code, said)
		}
	}
	if _, said, _ := convertText(t, "a.sh", "kubectl drain node-1 --timeout=1s"); !strings.Contains(said, "--timeout=1s") {
		t.Errorf("said %q", said)
	}
}

// A single loss is enough to fail, and a single object is no List.
func TestConvertOne(t *testing.T) {
	const command = "kubectl drain node-1 --ignore-daemonsets --force --delete-emptydir-data"
	written, said, s := convertText(t, "a.sh", command+" --grace-period=30", "--fail-on-loss")
	if written != "" || s.code == 0 || !strings.Contains(said, "1 field is lost") {
		t.Errorf("exit code %d, wrote %q, said %q", s.code, written, said)
	}
	written, said, s = convertText(t, "a.sh", command, "--fail-on-loss", "-o=json")
	if s.code != 0 || !strings.Contains(written, `"kind": "NodeMaintenance"`) || strings.Contains(written, `"List"`) {
		t.Errorf("exit code %d, wrote %q, said %q", s.code, written, said)
	}
}

// Pods that the filters of NVIDIA's operator do not name would have stayed: nothing is evicted.
func TestConvertNVIDIAFilters(t *testing.T) {
	written, said, s := convertText(t, "in.yaml", "{apiVersion: maintenance.nvidia.com/v1alpha1, kind: NodeMaintenance, metadata: {name: a}, "+
		"spec: {requestorID: a, nodeName: node-1, drainSpec: {podEvictionFilters: [{byResourceNameRegex: gpu}]}}}")
	if s.code != 0 || !strings.Contains(written, "  stage: Cordon\n") {
		t.Errorf("exit code %d, wrote %q, said %q", s.code, written, said)
	}
}

// What the shell would replace is not read as a flag or a name: the error would be about a text that
// kubectl never gets.
func TestConvertReportsExpandedWordsOnly(t *testing.T) {
	_, said, _ := convertText(t, "a.sh", "kubectl drain --$FLAG")
	if strings.Count(said, "a.sh:1: ") != 1 || !strings.Contains(said, `"--$FLAG" is replaced`) {
		t.Errorf("said %q", said)
	}
}

// TestConvertReportsSettings loses no variable that says which cluster is drained.
func TestConvertReportsSettings(t *testing.T) {
	_, said, _ := convertText(t, "a.sh", "A=1 KUBECONFIG=/b kubectl drain node-1\nenv KUBECONFIG=/c kubectl drain node-2\nexport KUBECONFIG=/d\nkubectl drain node-3")
	for _, want := range []string{
		"lost: a.sh:1: kubectl drain: A=1: is not part of an object", "lost: a.sh:1: kubectl drain: KUBECONFIG=/b: is not",
		"lost: a.sh:2: kubectl drain: KUBECONFIG=/c: is not", "lost: a.sh:3: export KUBECONFIG=/d: KUBECONFIG: is not",
	} {
		contains(t, said, want)
	}
	if strings.Contains(said, "other command") {
		t.Errorf("said %q", said)
	}
}

// TestClassify checks which commands of a script are drain commands.
func TestClassify(t *testing.T) {
	for script, want := range map[string]commandKind{
		"kubectl drain a":                          drainCommand,
		"/usr/bin/kubectl drain a":                 drainCommand,
		"sudo kubectl --context prod drain a":      drainCommand,
		"KUBECONFIG=x kubectl -n a drain a":        drainCommand,
		"env A=b kubectl drain a":                  drainCommand,
		"kubectl get nodes drain":                  otherCommand,
		"kubectl -n drain get nodes":               otherCommand,
		"kubectl -n drain --context":               otherCommand,
		"kubectl delete pod drain":                 otherCommand,
		"kubectl":                                  otherCommand,
		"echo kubectl drain a":                     printedDrain,
		"printf \"%s kubectl drain\" a":            printedDrain,
		"echo drained":                             otherCommand,
		"KUBECONFIG=/a":                            clusterSetting,
		"export A=b KUBECONFIG=/a":                 clusterSetting,
		"export KUBECONFIG":                        otherCommand,
		"A=KUBECONFIG=b":                           otherCommand,
		"KUBECONFIG=/a make up":                    otherCommand,
		"k --context a drain a":                    foreignDrain,
		"k --context drain get nodes":              otherCommand,
		"oc --context a adm drain a":               foreignDrain,
		"oc -n adm get nodes drain":                otherCommand,
		"X=\"kubectl drain\"":                      foreignDrain,
		"alias kd='kubectl drain'":                 hiddenDrain,
		"sudo -u root kubectl drain a":             hiddenDrain,
		"docker node update --availability drain":  otherCommand,
		"xargs kubectl drain":                      hiddenDrain,
		"timeout 5m kubectl drain a":               hiddenDrain,
		"bash -c 'kubectl drain a'":                hiddenDrain,
		"${KUBECTL} drain a":                       hiddenDrain,
		"k drain a":                                foreignDrain,
		"oc adm drain a":                           foreignDrain,
		"kubectl uncordon a":                       schedulingCommand,
		"kubectl --request-timeout 5s cordon a":    schedulingCommand,
		"kubectl --v 5 --insecure-skip-tls-verify": otherCommand,
	} {
		commands, err := readShell(script)
		if err != nil || len(commands) != 1 {
			t.Fatalf("%s: %v, %v", script, commands, err)
		}
		if got, _ := classify(commands[0].words); got != want {
			t.Errorf("%s: got %d, want %d", script, got, want)
		}
	}
}

// FuzzReadShell reads any text in a time that is proportional to its length, and never panics.
func FuzzReadShell(f *testing.F) {
	for _, seed := range []string{"kubectl drain a", "a $(b `c` \"d\") <<X\nX\n", "${", "'\"\\", "if for { } ;; && <(", "2>&1 <<<"} {
		f.Add(seed)
	}
	f.Fuzz(func(_ *testing.T, script string) {
		commands, _ := readShell(script)
		for _, command := range commands {
			classify(command.words)
		}
	})
}
