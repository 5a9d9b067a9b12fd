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

package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	plaintexttesting "k8s.io/component-helpers/plaintext/testing"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/yaml"
)

// TestConvertGolden converts whole files. hack/interop decodes the results for and of 1.37 with the
// types of that release.
func TestConvertGolden(t *testing.T) {
	t.Chdir("testdata")
	for _, tc := range []struct {
		name string
		args []string
	}{
		{"medik8s", []string{"-f", "medik8s.yaml"}},
		{"nvidia", []string{"-f", "nvidia.yaml"}},
		{"from-lifecycle", []string{"-f", "lifecycle-requests.yaml", "-f", "lifecycle-pods.yaml"}},
		{"to-lifecycle", []string{"-f", "requests.yaml", "-f", "pods.yaml", "--to=lifecycle.k8s.io/v1alpha1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inv := &invocation{}
			written := inv.mustRun(t, tc.args...)
			golden(t, tc.name+".out.yaml", written)
			golden(t, tc.name+".err.txt", inv.errOut.String())
			asJSON := inv.mustRun(t, append([]string{"-o", "json"}, tc.args...)...)
			if again, _, _ := convertText(t, "list.json", asJSON, "--to=nothing"); again != "" {
				t.Errorf("wrote %s", again)
			}
			in := &input{name: "list.json", data: []byte(asJSON)}
			if documents, err := in.documents(); err != nil || len(documents) != 1 {
				t.Errorf("the JSON has %d documents, %v", len(documents), err)
			}
		})
	}
}

func TestConvertCommand(t *testing.T) {
	t.Chdir("testdata")
	for name, command := range map[string]string{
		"command":          "kubectl drain node/foo --ignore-daemonsets --timeout=5m -v4",
		"command-nodes":    "kubectl --context=prod drain node-2 node-3 --ignore-daemonsets",
		"command-selector": "kubectl drain --selector=pool=batch,gpu --pod-selector=app=training --grace-period=30 --disable-eviction --skip-wait-for-delete-timeout=20 --chunk-size=100",
		"command-dry-run":  "kubectl drain node-4 --dry-run=server",
	} {
		t.Run(name, func(t *testing.T) {
			written, said, _ := convertCommand(t, command)
			golden(t, name+".out.yaml", written)
			golden(t, name+".err.txt", said)
		})
	}
}

func TestConvertFailOnLoss(t *testing.T) {
	inv := &invocation{}
	if out := inv.run(t, "--fail-on-loss", "--", "kubectl", "drain", "foo"); out != "" || inv.code != 1 {
		t.Errorf("exit code %d, wrote %q", inv.code, out)
	}
	contains(t, inv.failure, "--fail-on-loss: 3 fields are lost, nothing is written")
	harmless := []string{"--fail-on-loss", "--", "kubectl", "drain", "foo", "--force", "--ignore-daemonsets", "--delete-emptydir-data"}
	if out := inv.mustRun(t, harmless...); !strings.Contains(out, "name: drain-foo") {
		t.Errorf("wrote %q", out)
	}
}

// TestConvertKnowsDrain fails when kubectl drain has a flag of which nothing is known: it must not be
// taken for one of all commands.
func TestConvertKnowsDrain(t *testing.T) {
	global := newGlobalFlags()
	newDrainCommand().Flags().VisitAll(func(flag *pflag.Flag) {
		if _, known := drainFlags[flag.Name]; !known && global.Lookup(flag.Name) == nil {
			t.Errorf("drainFlags has no --%s: %s", flag.Name, flag.Usage)
		}
	})
	for name := range drainFlags {
		if newDrainCommand().Flags().Lookup(name) == nil {
			t.Errorf("kubectl drain has no --%s", name)
		}
	}
}

// TestConvertRefuses checks that what is not understood is an error that names the place and the way
// out, and that nothing is written then.
func TestConvertRefuses(t *testing.T) {
	const (
		medik8s = "{apiVersion: nodemaintenance.medik8s.io/v1beta1, kind: NodeMaintenance, metadata: {name: a}, spec: {nodeName: node-1}}\n---\n"
		uid     = "6f1c1d1e-0b0a-4a57-9b8f-1c6f7d7e2a10"
		pod     = "target: {pod: {name: web-0, uid: " + uid + "}}"
	)
	asked := func(spec string) string {
		return "{apiVersion: lifecycle.k8s.io/v1alpha1, kind: EvictionRequest, metadata: {name: a, namespace: b}, spec: {" + spec + "}}"
	}
	podWith := func(spec string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [], " + spec + "}}"
	}
	many := func(field string, count int, entry string) string {
		var entries []string
		for i := range count {
			entries = append(entries, strings.ReplaceAll(entry, "N", string(rune('a'+i))))
		}
		return podWith(field + ": [" + strings.Join(entries, ", ") + "]")
	}
	for name, tc := range map[string]struct {
		file, text string
		args       []string
		want       []string
	}{
		"unknown kind":            {text: medik8s + "{apiVersion: v1, kind: Service, metadata: {name: web}}", want: []string{"in.yaml, document 2: Service/web: kind: convert does not know Service of v1", "remove it"}},
		"unknown version":         {text: "{apiVersion: nodemaintenance.medik8s.io/v1, kind: NodeMaintenance}", want: []string{"apiVersion: convert does not know nodemaintenance.medik8s.io/v1, only", "nodemaintenance.medik8s.io/v1beta1"}},
		"unknown version of pods": {text: "{apiVersion: apps/v1beta1, kind: Deployment}", want: []string{"only apps/v1"}},
		"unknown field":           {text: medik8s + strings.Replace(medik8s, "nodeName", "nodename: x, nodeName", 1), want: []string{`document 2: NodeMaintenance/a: unknown field "spec.nodename"`, "correct its name, or remove it"}},
		"field of another type":   {text: strings.Replace(medik8s, "node-1", "1", 1), want: []string{"NodeMaintenance/a: spec.nodeName: is of the type number, must be of the type string"}},
		"no spec object":          {text: "{apiVersion: nodemaintenance.medik8s.io/v1beta1, kind: NodeMaintenance, metadata: {name: a}, spec: [x]}", want: []string{"spec: is of the type list, must be of the type object"}},
		"no responders":           {text: podWith("evictionResponders: 5"), want: []string{"Pod/a: spec: evictionResponders: is of the type number, must be of the type list"}},
		"no list of containers":   {text: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: true}}", want: []string{"spec.containers: is of the type boolean, must be of the type list"}},
		"no priority number":      {text: podWith("evictionResponders: [{name: example.com/a, priority: high}]"), want: []string{"evictionResponders.priority: is of the type string, must be of the type integer"}},
		"no node":                 {text: strings.Replace(medik8s, "node-1", `""`, 1), want: []string{"spec.nodeName: is missing"}},
		"no name of a node":       {text: strings.Replace(medik8s, "node-1", "node_1", 1), want: []string{`"node_1" is no name of a node`}},
		"no name of an object":    {text: strings.Replace(medik8s, "name: a", "name: A", 1), want: []string{"metadata.name: Invalid value"}},
		"no name":                 {text: strings.Replace(medik8s, "name: a", "", 1), want: []string{"metadata.name: Required"}},
		"long reason":             {text: strings.Replace(medik8s, "nodeName", "reason: "+strings.Repeat("x", 1025)+", nodeName", 1), want: []string{"spec.reason: has 1025 characters, more than 1024"}},
		"two of a name":           {text: medik8s + medik8s, want: []string{`document 2: NodeMaintenance/a: metadata.name: "a" is also the name of the object from in.yaml, document 1`}},
		"no apiVersion":           {text: "{kind: NodeMaintenance}", want: []string{"in.yaml, document 1: apiVersion: is missing"}},
		"no kind":                 {text: "{apiVersion: v1, kind: 5}", want: []string{"kind: is missing"}},
		"no object":               {text: "- a\n- b\n", want: []string{"document 1: is no object"}},
		"a script":                {file: "a.sh", text: "kubectl drain $NODE", want: []string{"a.sh: is a script", "kubectl maintenance convert -- kubectl drain NODE"}},
		"a script in a pipe":      {text: "#!/bin/sh\nkubectl drain a", want: []string{"in.yaml: is a script"}},
		"nothing":                 {text: "# only a comment\n---\n", want: []string{"in.yaml: has no object"}},
		"item that is no object":  {text: "{apiVersion: v1, kind: List, items: [1]}", want: []string{"items[0]: is no object"}},
		"field of a list":         {text: "{apiVersion: v1, kind: List, item: 1, items: []}", want: []string{"item: unknown field of a list"}},
		"a key twice":             {text: "{apiVersion: v1, apiVersion: v1, kind: Pod}", want: []string{`document 1`, `key "apiVersion" already set`}},
		"no YAML":                 {text: "{apiVersion: ", want: []string{"in.yaml, document 1: yaml: line 1"}},
		"NUL":                     {text: medik8s + "a\x00", want: []string{"in.yaml: is no text: line 3 has a NUL byte"}},
		"no UTF-8":                {text: "a: \xff", want: []string{"in.yaml: is no text in UTF-8"}},
		"already converted":       {text: "{apiVersion: coordination.k8s.io/v1alpha1, kind: EvictionRequest}", want: []string{"it is already of that version: remove it, or use --to=lifecycle.k8s.io/v1alpha1"}},
		"no counterpart in 1.37":  {text: medik8s, args: []string{"--to=lifecycle.k8s.io/v1alpha1"}, want: []string{"Kubernetes 1.37 has no NodeMaintenance"}},
		"a selector":              {text: strings.Replace(strings.Replace(medik8s, "nodemaintenance.medik8s.io/v1beta1", "maintenance.nvidia.com/v1alpha1", 1), "nodeName", "drainSpec: {podSelector: 'a>1'}, nodeName", 1), want: []string{"spec.drainSpec.podSelector: "}},
		"a selector that is too long": {text: strings.Replace(strings.Replace(medik8s, "nodemaintenance.medik8s.io/v1beta1", "maintenance.nvidia.com/v1alpha1", 1), "nodeName",
			"drainSpec: {podSelector: 'a,b,c,d,e,f,g,h,i,j,k'}, nodeName", 1), want: []string{"the pod selector has 11 requirements, more than 10"}},

		"intent":               {text: asked(pod + ", requester: example.com/a, intent: Delete"), want: []string{"spec.intent=Delete: must be Eviction or Withdrawn"}},
		"requester":            {text: asked(pod + ", requester: example.com, intent: Eviction"), want: []string{"spec.requester: Invalid value", "domain-prefixed key"}},
		"UID":                  {text: asked("target: {pod: {name: web-0, uid: x}}, requester: example.com/a, intent: Eviction"), want: []string{"spec.target.pod.uid: Invalid value"}},
		"no target":            {text: asked("target: {}, requester: example.com/a, intent: Eviction"), want: []string{"spec.target.pod: is missing"}},
		"another pod name":     {text: asked(pod+", requester: example.com/a, intent: Eviction") + "\n---\n" + strings.Replace(asked(pod+", requester: example.com/b, intent: Eviction"), "web-0", "web-1", 1), want: []string{"document 2", "spec.target.pod.name=web-1: another request names the pod of this UID web-0"}},
		"no priority":          {text: podWith("evictionResponders: [{name: example.com/a}]"), want: []string{"Pod/a: spec.evictionResponders[0].priority: is missing"}},
		"reserved priority":    {text: podWith("evictionResponders: [{name: example.com/a, priority: 999}]"), want: []string{"spec.evictionResponders[0].priority=999: must be at least 1000"}},
		"high priority":        {text: podWith("evictionResponders: [{name: example.com/a, priority: 100001}]"), want: []string{"must be from 0 to 100000"}},
		"responder twice":      {text: podWith("evictionResponders: [{name: example.com/a, priority: 2000}, {name: example.com/a, priority: 3000}]"), want: []string{"spec.evictionResponders[1].name=example.com/a: is there twice"}},
		"responder field":      {text: podWith("evictionResponders: [{name: example.com/a, priority: 2000, role: x}]"), want: []string{`Pod/a: spec: unknown field "evictionResponders[0].role"`}},
		"too many responders":  {text: many("evictionResponders", 11, "{name: example.com/N, priority: 2000}"), want: []string{"has 11 responders, more than 10"}},
		"both":                 {text: podWith("evictionResponders: [{name: example.com/a, priority: 2000}], evictionInterceptors: [{name: a.example.com}]"), want: []string{"spec.evictionResponders: the pod has evictionInterceptors, too: remove one of them"}},
		"both by annotation":   {text: strings.Replace(podWith("evictionResponders: [{name: example.com/a, priority: 2000}]"), "name: a", "name: a, annotations: {interceptor.evictionrequest.coordination.k8s.io/priority_a.example.com: \"5000\"}", 1), args: []string{"--to=lifecycle.k8s.io/v1alpha1"}, want: []string{"spec.evictionResponders: annotations of the pod register interceptors, too: remove one of them"}},
		"an unknown field":     {text: podWith("newField: 1"), want: []string{`Pod/a: unknown field "spec.newField"`}},
		"no spec":              {text: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {}}", want: []string{"Deployment/a: spec.template.spec: is missing"}},
		"many interceptors":    {text: many("evictionInterceptors", 16, "{name: N.example.com}"), args: []string{"--to=lifecycle.k8s.io/v1alpha1"}, want: []string{"the pod has 16 interceptors, more than 15"}},
		"interceptor twice":    {text: many("evictionInterceptors", 2, "{name: a.example.com}"), args: []string{"--to=lifecycle.k8s.io/v1alpha1"}, want: []string{"spec.evictionInterceptors[1].name=a.example.com: is there twice"}},
		"short name":           {text: podWith("evictionInterceptors: [{name: example.com}]"), args: []string{"--to=lifecycle.k8s.io/v1alpha1"}, want: []string{"spec.evictionInterceptors[0].name=example.com", "--rename=example.com=example.com/NAME"}},
		"names that collide":   {text: podWith("evictionInterceptors: [{name: a.example.com}, {name: example.com/a}]"), args: []string{"--to=lifecycle.k8s.io/v1alpha1"}, want: []string{"has the same name in 1.37 as a.example.com, example.com/a"}},
		"annotation":           {text: strings.Replace(podWith("hostname: x"), "name: a", "name: a, annotations: {interceptor.evictionrequest.coordination.k8s.io/priority_a.example.com: high}", 1), args: []string{"--to=lifecycle.k8s.io/v1alpha1"}, want: []string{"metadata.annotations[interceptor", `must be "<priority>"`}},
		"new name is no name":  {text: podWith("evictionInterceptors: [{name: a.example.com}]"), args: []string{"--to=lifecycle.k8s.io/v1alpha1", "--rename=a.example.com=x"}, want: []string{"--rename=a.example.com=x: ", "domain-prefixed key"}},
		"unknown name to new":  {text: medik8s, args: []string{"--rename=a.example.com=example.com/x"}, want: []string{"--rename=a.example.com=example.com/x: no interceptor or requester has the name a.example.com"}},
		"unknown target":       {text: medik8s, args: []string{"--to=v1"}, want: []string{`--to="v1": must be one of [coordination.k8s.io/v1alpha1 lifecycle.k8s.io/v1alpha1]`}},
		"unknown format":       {text: medik8s, args: []string{"-o=name"}, want: []string{`--output="name": must be one of [json yaml]`}},
		"file and command":     {text: medik8s, args: []string{"--", "kubectl", "drain", "a"}, want: []string{"not both"}},
		"second standard in":   {text: medik8s, args: []string{"-f-", "-f-"}, want: []string{"standard input can be read only once"}},
		"URL":                  {text: medik8s, args: []string{"-fhttps://example.com/a.yaml"}, want: []string{"download the file first"}},
		"file that is missing": {text: medik8s, args: []string{"-fmissing.yaml"}, want: []string{"--filename=missing.yaml: ", "no such file"}},

		"no requester name":     {text: "{apiVersion: coordination.k8s.io/v1alpha1, kind: EvictionRequest, metadata: {name: " + uid + "}, spec: {" + pod + ", requesters: [{name: A}]}}", args: []string{"--to=lifecycle.k8s.io/v1alpha1"}, want: []string{"spec.requesters[0].name: Invalid value"}},
		"requesters collide":    {text: "{apiVersion: coordination.k8s.io/v1alpha1, kind: EvictionRequest, metadata: {name: " + uid + "}, spec: {" + pod + ", requesters: [{name: a.example.com}, {name: example.com/a}]}}", args: []string{"--to=lifecycle.k8s.io/v1alpha1"}, want: []string{"spec.requesters[1].name=example.com/a: has the same name in 1.37 as a.example.com"}},
		"request of no pod":     {text: "{apiVersion: coordination.k8s.io/v1alpha1, kind: EvictionRequest, metadata: {name: " + uid + "}, spec: {target: {}}}", args: []string{"--to=lifecycle.k8s.io/v1alpha1"}, want: []string{"spec.target.pod: is missing"}},
		"request of no UID":     {text: "{apiVersion: coordination.k8s.io/v1alpha1, kind: EvictionRequest, metadata: {name: x}, spec: {target: {pod: {name: A, uid: x}}}}", args: []string{"--to=lifecycle.k8s.io/v1alpha1"}, want: []string{"spec.target.pod.name=A: ", "spec.target.pod.uid: Invalid value"}},
		"NVIDIA without a node": {text: "{apiVersion: maintenance.nvidia.com/v1alpha1, kind: NodeMaintenance, metadata: {name: a}, spec: {requestorID: a}}", want: []string{"spec.nodeName: is missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.file == "" {
				tc.file = "in.yaml"
			}
			written, said, inv := convertText(t, tc.file, tc.text, tc.args...)
			contains(t, said, tc.want...)
			if written != "" || inv.code != cmdutil.DefaultErrorExitCode {
				t.Errorf("exit code %d, wrote %q", inv.code, written)
			}
		})
	}
}

// TestConvertKeepsConverted converts pods to what they have already.
func TestConvertKeepsConverted(t *testing.T) {
	for to, field := range map[string]string{
		ours:   "evictionInterceptors: [{name: a.example.com}]",
		theirs: "evictionResponders: [{name: example.com/a, priority: 2000}]",
	} {
		pod := "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: a}], " + field + "}}"
		written, said, _ := convertText(t, "in.yaml", pod, "--to="+to)
		var got, want any
		if err := errors.Join(yaml.Unmarshal([]byte(written), &got), yaml.Unmarshal([]byte(pod), &want)); err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(want, got); diff != "" || said != "" {
			t.Errorf("--to=%s says %q (-want, +got):\n%s", to, said, diff)
		}
	}
}

// TestConvertCommandRefuses checks commands that are given as arguments.
func TestConvertCommandRefuses(t *testing.T) {
	for _, tc := range []struct{ command, want string }{
		{"helm drain a", `is not "kubectl drain": write the whole command after "--"`},
		{"kubectl cordon a", `is not "kubectl drain"`},
		{"kubectl", `is not "kubectl drain"`},
		{"kubectl drain a --dry-run=often", `Invalid dry-run value`},
		{"kubectl drain --selector=", "is empty"},
		{"kubectl drain $NODE", `"$NODE" is no name of a node`},
		{"kubectl drain nm/a", `"nm/a" is no name of a node`},
		{"kubectl drain node-1 --delete-local", "kubectl drain: unknown flag: --delete-local"},
		{"kubectl drain node-1 --timeout=5", `kubectl drain: invalid argument "5" for "--timeout"`},
		{"kubectl drain --force", "names no node"},
		{"kubectl drain a -l b=c", "has nodes and --selector"},
	} {
		out, said, inv := convertCommand(t, tc.command)
		if out != "" || inv.code != 1 {
			t.Errorf("%s: exit code %d, wrote %q", tc.command, inv.code, out)
		}
		contains(t, said, tc.want)
	}
	_, said, inv := convertCommand(t, "kubectl drain a", "--to=lifecycle.k8s.io/v1alpha1")
	if contains(t, said, "Kubernetes 1.37 has no NodeMaintenance"); inv.code != 1 {
		t.Errorf("exit code %d", inv.code)
	}
}

func TestConvertReadsDirectories(t *testing.T) {
	directory := t.TempDir()
	write := func(name, node string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(directory, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		text := "{apiVersion: nodemaintenance.medik8s.io/v1beta1, kind: NodeMaintenance, metadata: {name: " + node + "}, spec: {nodeName: " + node + "}}"
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.yaml", "node-1")
	write("b.json", "node-2")
	write("c.txt", "node-3")
	write("below/d.yml", "node-4")
	if err := os.WriteFile(filepath.Join(directory, "e.sh"), []byte("kubectl drain node-5"), 0o600); err != nil {
		t.Fatal(err)
	}
	nodes := func(args ...string) []string {
		var names []string
		for _, line := range strings.Split((&invocation{}).mustRun(t, args...), "\n") {
			if name, found := strings.CutPrefix(line, "  name: "); found {
				names = append(names, name)
			}
		}
		return names
	}
	for _, tc := range []struct{ args, want []string }{
		{[]string{"-f", directory}, []string{"node-1", "node-2"}},
		{[]string{"-R", "-f", directory}, []string{"node-1", "node-2", "node-4"}},
		{[]string{"-f", filepath.Join(directory, "*.txt")}, []string{"node-3"}},
	} {
		if got := nodes(tc.args...); !slices.Equal(got, tc.want) {
			t.Errorf("%v: got %v, want %v", tc.args, got, tc.want)
		}
	}
	inv := &invocation{in: "{apiVersion: nodemaintenance.medik8s.io/v1beta1, kind: NodeMaintenance, metadata: {generateName: a-}, spec: {nodeName: a}}"}
	contains(t, inv.mustRun(t, "-f", "-"), "generateName: a-")
	empty := t.TempDir()
	inv.run(t, "-f", empty)
	contains(t, inv.failure, "the directory has no file that ends in .json, .yaml, .yml")
}

func TestConvertRenames(t *testing.T) {
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [], "
	written, said, _ := convertText(t, "in.yaml", pod+"evictionResponders: [{name: example.com/a, priority: 5000}]}}", "--rename=example.com/a=a.example.com")
	contains(t, written, "- name: a.example.com\n")
	contains(t, said, "spec.evictionResponders=example.com/a: is a.example.com: the program must use that name")
	written, said, _ = convertText(t, "in.yaml", pod+"evictionInterceptors: [{name: a.example.com}]}}", "--to=lifecycle.k8s.io/v1alpha1", "--rename=a.example.com=b.example.com/c")
	contains(t, written, "- name: b.example.com/c\n", "priority: 11000")
	contains(t, said, "spec.evictionInterceptors[0].name=a.example.com: is b.example.com/c: the program must use that name")
}

// TestConvertLeavesRequestersOfLifecycle: a requester that has come by lifecycle.k8s.io has a request there, and a second
// one would keep the eviction requested when that is withdrawn. It is converted if another client wants it, too.
func TestConvertLeavesRequestersOfLifecycle(t *testing.T) {
	owned := func(manager string, names ...string) string {
		var fields []string
		for _, name := range names {
			fields = append(fields, fmt.Sprintf(`'k:{"name":"%s"}': {.: {}, 'f:name': {}}`, name))
		}
		return fmt.Sprintf("{manager: %s, operation: Apply, apiVersion: coordination.k8s.io/v1alpha1, fieldsType: FieldsV1, fieldsV1: {'f:spec': {'f:requesters': {%s}}}}", manager, strings.Join(fields, ", "))
	}
	request := "{apiVersion: coordination.k8s.io/v1alpha1, kind: EvictionRequest, metadata: {name: 6f1c1d1e-0b0a-4a57-9b8f-1c6f7d7e2a10, managedFields: [" +
		owned("lifecycle.k8s.io", "example.com/there", "example.com/both") + ", " + owned("drainer", "example.com/both", "example.com/here") +
		"]}, spec: {target: {pod: {name: a, uid: 6f1c1d1e-0b0a-4a57-9b8f-1c6f7d7e2a10}}, requesters: [{name: example.com/there}, {name: example.com/both}, {name: example.com/here}]}}"
	written, said, inv := convertText(t, "in.yaml", request, "--to=lifecycle.k8s.io/v1alpha1")
	if inv.code != 0 || strings.Count(written, "requester:") != 2 || strings.Contains(written, "there") {
		t.Errorf("exit code %d, wrote %q", inv.code, written)
	}
	contains(t, written, "requester: example.com/both\n", "requester: example.com/here\n")
	contains(t, said, "ignored: in.yaml, document 1: EvictionRequest/6f1c1d1e-0b0a-4a57-9b8f-1c6f7d7e2a10: spec.requesters[0].name=example.com/there: it has come by a request of lifecycle.k8s.io, which stays")
}

// TestConvertReports checks single fields that are not written as they were.
func TestConvertReports(t *testing.T) {
	nvidia := func(spec string) string {
		return "{apiVersion: maintenance.nvidia.com/v1alpha1, kind: NodeMaintenance, metadata: {name: a}, spec: {nodeName: b, " + spec + "}}"
	}
	asked := func(metadata, requester string) string {
		return "{apiVersion: lifecycle.k8s.io/v1alpha1, kind: EvictionRequest, metadata: {name: " + requester + metadata + "}, spec: {target: {pod: {name: a, uid: 6f1c1d1e-0b0a-4a57-9b8f-1c6f7d7e2a10}}, requester: example.com/" + requester + ", intent: Eviction}}\n---\n"
	}
	for name, tc := range map[string]struct {
		text, to, said string
		written        []string
	}{
		"a drain without a cordon":   {text: nvidia("cordon: false, drainSpec: {force: true}"), said: "lost: in.yaml, document 1: NodeMaintenance/a: spec.cordon=false: the stages Cordon and Drain cordon the node", written: []string{"stage: Drain"}},
		"neither cordon nor drain":   {text: nvidia("cordon: false"), written: []string{"stage: Idle"}},
		"only a cordon":              {text: nvidia("cordon: true"), written: []string{"stage: Cordon"}},
		"waiting for all pods":       {text: nvidia("waitForPodCompletion: {}, drainSpec: {}"), said: `spec.waitForPodCompletion="all pods"`, written: []string{"stage: Cordon"}},
		"no force":                   {text: nvidia("drainSpec: {deleteEmptyDir: true}"), said: "lost: in.yaml, document 1: NodeMaintenance/a: spec.drainSpec.force=false: without it", written: []string{"stage: Drain"}},
		"no timeout":                 {text: nvidia("drainSpec: {}"), said: "spec.drainSpec.timeoutSeconds=300: ends one attempt", written: []string{"stage: Drain"}},
		"labels of several requests": {text: asked("", "x") + asked(", labels: {a: b}, annotations: {c: d}", "z"), written: []string{"    a: b\n", "    c: d\n", "- name: example.com/x\n  - name: example.com/z\n"}},
		"the same requester twice":   {text: asked("", "x") + asked("", "x"), written: []string{"requesters:\n  - name: example.com/x\n  target"}},
		"no requester": {text: "{apiVersion: coordination.k8s.io/v1alpha1, kind: EvictionRequest, metadata: {name: 6f1c1d1e-0b0a-4a57-9b8f-1c6f7d7e2a10}, spec: {target: {pod: {name: a, uid: 6f1c1d1e-0b0a-4a57-9b8f-1c6f7d7e2a10}}}}",
			to: "lifecycle.k8s.io/v1alpha1", said: "spec.requesters: is empty: no one requests the eviction"},
		"a pod that is being deleted": {text: "{apiVersion: v1, kind: Pod, metadata: {name: a, deletionTimestamp: '2026-11-21T13:05:00Z'}, spec: {containers: []}}", said: "metadata.deletionTimestamp: the object is being deleted, so nothing is written for it"},
		"only reserved responders":    {text: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [], evictionResponders: [{name: x.k8s.io/y, priority: 0}]}}", said: "spec.evictionResponders=x.k8s.io/y: names in the domains", written: []string{"spec:\n  containers: []\n"}},
		"interceptors in a scheduling group": {
			text: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [], schedulingGroup: {podGroupName: g}, evictionInterceptors: [{name: x.example.com}]}}",
			to:   "lifecycle.k8s.io/v1alpha1", said: "lost: in.yaml, document 1: Pod/a: spec.evictionInterceptors[0].name=x.example.com: 1.37 refuses responders of a pod that has a schedulingGroup",
			written: []string{"spec:\n  containers: []\n  schedulingGroup:\n    podGroupName: g\n"},
		},
		"the highest priority":     {text: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [], evictionResponders: [{name: x.example.com/y, priority: 100000}]}}", said: "x.example.com/y (100000)", written: []string{"  evictionInterceptors:\n  - name: x.example.com/y\n"}},
		"a pod without responders": {text: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: []}}", written: []string{"apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nspec:\n  containers: []\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{}
			if tc.to != "" {
				args = append(args, "--to="+tc.to)
			}
			written, said, inv := convertText(t, "in.yaml", tc.text, args...)
			if inv.code != 0 || (written == "") != (len(tc.written) == 0) || strings.Contains(written, "evictionInterceptors: []") {
				t.Errorf("exit code %d, wrote %q, said %q", inv.code, written, said)
			}
			contains(t, said, tc.said)
			contains(t, written, tc.written...)
			if strings.Contains(said, ": status: ") {
				t.Errorf("a status that does not exist is reported: %s", said)
			}
		})
	}
}

func TestPriorities(t *testing.T) {
	for name, tc := range map[string]struct{ registered, want []int }{
		"of the spec":                 {[]int{-1, -1, -1}, []int{13000, 12000, 11000}},
		"of annotations":              {[]int{20000, 1000}, []int{20000, 1000}},
		"of both":                     {[]int{-1, -1, 5000, 4000}, []int{12000, 11000, 5000, 4000}},
		"above a high annotation":     {[]int{-1, -1, 50000}, []int{52000, 51000, 50000}},
		"no room above an annotation": {[]int{-1, 100000, 5000}, []int{13000, 12000, 11000}},
		"the highest room":            {[]int{-1, 99000}, []int{100000, 99000}},
		"annotations alike":           {[]int{-1, 5000, 5000}, []int{13000, 12000, 11000}},
		"a reserved priority":         {[]int{5000, 999}, []int{12000, 11000}},
		"ten":                         {slices.Repeat([]int{-1}, 10), []int{20000, 19000, 18000, 17000, 16000, 15000, 14000, 13000, 12000, 11000}},
		"none":                        {nil, []int{}},
	} {
		var all []interceptor
		for _, priority := range tc.registered {
			all = append(all, interceptor{priority: priority})
		}
		if got := priorities(all); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

// TestConvertHostile converts input that was made to do harm.
func TestConvertHostile(t *testing.T) {
	bomb := "a0: &a0 [x]\n"
	for i := range 30 {
		name, before := string(rune('b'+i%25))+strings.Repeat("z", i/25), "a0"
		if i > 0 {
			before = string(rune('b'+(i-1)%25)) + strings.Repeat("z", (i-1)/25)
		}
		bomb += name + ": &" + name + " [" + strings.Repeat("*"+before+",", 9) + "*" + before + "]\n"
	}
	for name, text := range map[string]string{
		"aliases":  bomb,
		"nesting":  strings.Repeat("[", 100000),
		"depth":    strings.Repeat("{a: ", 9000) + "1" + strings.Repeat("}", 9000),
		"terminal": "{apiVersion: v1, kind: \"\\u001b[2J\", metadata: {name: \"\\u009b\"}}",
		"lists":    strings.Repeat("{apiVersion: v1, kind: List, items: [", 1000) + strings.Repeat("]}", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			written, said, inv := convertText(t, "in.yaml", text)
			if name != "lists" && (inv.code == 0 || written != "") {
				t.Errorf("exit code %d, wrote %d bytes", inv.code, len(written))
			}
			plaintexttesting.Check(t, name, said)
		})
	}
	large := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, maxInputSize+1); err != nil {
		t.Fatal(err)
	}
	inv := &invocation{}
	inv.run(t, "-f", large)
	contains(t, inv.failure, "large.yaml: is larger than 64 MiB: split it")
	inv.run(t, "-f", "\x1b[2J.yaml")
	contains(t, inv.failure, "no such file")
	plaintexttesting.Check(t, "name of a file", inv.failure)
}

// TestConvertKeepsCharacters checks that values reach the server unchanged, although the output is
// safe for a terminal.
func TestConvertKeepsCharacters(t *testing.T) {
	// YAML quotes the second one by itself, and not the first.
	for _, reason := range []string{"right to left \u202e", "a bell \u0007", "two\nlines \u202e"} {
		quoted, err := json.Marshal(reason)
		if err != nil {
			t.Fatal(err)
		}
		written, _, inv := convertText(t, "in.yaml", "{apiVersion: nodemaintenance.medik8s.io/v1beta1, kind: NodeMaintenance, metadata: {name: a}, spec: {nodeName: b, reason: "+string(quoted)+"}}")
		if inv.code != 0 {
			t.Fatal(inv.failure)
		}
		plaintexttesting.Check(t, "output", written)
		in := &input{name: "out.yaml", data: []byte(written)}
		documents, err := in.documents()
		if err != nil {
			t.Fatal(err)
		}
		spec, _ := documents[0].object["spec"].(map[string]any)
		if spec["reason"] != reason {
			t.Errorf("the reason is %q, want %q", spec["reason"], reason)
		}
	}
}
