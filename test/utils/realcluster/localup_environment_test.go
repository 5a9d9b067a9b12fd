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

package realcluster

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
)

func TestScriptEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, file)
	for name, test := range map[string]struct {
		set  []string
		want []string
		err  []string
	}{
		"nothing": {set: []string{"HOME=/root", "HTTPS_PROXY=http://proxy", "USER=someone", "ARTIFACTS=/logs"}},
		"passed":  {set: []string{"LOG_LEVEL=5", "FEATURE_GATES=A=true,B=false"}, want: []string{"FEATURE_GATES=A=true,B=false", "LOG_LEVEL=5"}},
		// The script's own default, not ours.
		"empty":                       {set: []string{"FEATURE_GATES="}, want: []string{"FEATURE_GATES="}},
		"a file":                      {set: []string{"AUDIT_POLICY_FILE=" + file}, want: []string{"AUDIT_POLICY_FILE=" + file}},
		"a relative path":             {set: []string{"AUDIT_POLICY_FILE=testdata/../localup.go"}, want: []string{"AUDIT_POLICY_FILE=" + absolute(t, "localup.go")}},
		"no file":                     {set: []string{"AUDIT_POLICY_FILE=/none"}, err: []string{"AUDIT_POLICY_FILE=/none", "no such file"}},
		"a file that nodes hide":      {set: []string{"AUTHORIZATION_CONFIG=/run/config"}, err: []string{"AUTHORIZATION_CONFIG=/run/config", "copy it"}},
		"refused":                     {set: []string{"CERT_DIR=/certs"}, err: []string{"CERT_DIR=/certs", "env --unset=CERT_DIR make local-up"}},
		"refused, but empty":          {set: []string{"CERT_DIR="}},
		"refused, but what is done":   {set: []string{"ENABLE_DAEMON=false", "CGROUPS_PER_QOS=true", "NODES=1"}},
		"refused, with another value": {set: []string{"CGROUPS_PER_QOS=false"}, err: []string{"CGROUPS_PER_QOS=false"}},
		"a dry run":                   {set: []string{"DRY_RUN=true"}, err: []string{"DRY_RUN=true", "prints no commands"}},
		"two errors":                  {set: []string{"CERT_DIR=/certs", "GATES=A=true"}, err: []string{"CERT_DIR", "FEATURE_GATES"}},
		"a port":                      {set: []string{"API_SECURE_PORT=6443"}, want: []string{"API_SECURE_PORT=6443"}},
		"port 0":                      {set: []string{"API_SECURE_PORT=0"}, err: []string{"API_SECURE_PORT=0 is no port"}},
		"too large a port":            {set: []string{"API_SECURE_PORT=65536"}, err: []string{"API_SECURE_PORT=65536 is no port"}},
		"no node":                     {set: []string{"START_MODE=nokubelet"}, err: []string{"START_MODE=nokubelet", "nokubeproxy"}},
		"all is started":              {set: []string{"START_MODE=all"}, want: []string{"START_MODE=all"}},
		"no control plane":            {set: []string{"START_MODE=kubeletonly"}, err: []string{"START_MODE=kubeletonly"}},
		"no kube-proxy":               {set: []string{"START_MODE=nokubeproxy"}, want: []string{"START_MODE=nokubeproxy"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := ScriptEnvironment(test.set)
			if len(test.err) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, s.Env); diff != "" {
					t.Error(diff)
				}
				return
			}
			if err == nil {
				t.Fatalf("no error, but %q", s.Env)
			}
			for _, want := range test.err {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in %v", want, err)
				}
			}
		})
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A value of the user replaces a default, and never a setting of the sandbox.
func TestScriptEnvironmentOrder(t *testing.T) {
	s := &Script{Env: []string{"EVICTION_HARD=", "KUBELET_FLAGS=--v=9", "API_SECURE_PORT=1"}}
	got := map[string]string{}
	for _, variable := range s.environment([]string{"API_SECURE_PORT=2"}) {
		name, value, _ := strings.Cut(variable, "=")
		got[name] = value
	}
	for name, want := range map[string]string{
		"EVICTION_HARD": "", "API_SECURE_PORT": "2", "KUBELET_FLAGS": scriptKubeletFlags + " --v=9",
		"RUNTIME_CONFIG": "coordination.k8s.io/v1alpha1=true",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

// unusedVariables are those that the script reads in vain here.
var unusedVariables = sets.New(
	"API_PORT",             // It only looks whether there is an old server.
	"ARTIFACTS",            // That of a CI system, and not for us.
	"AUTH_ARGS",            // It only prints them.
	"CLUSTER_CIDR",         // Not used.
	"ETCD_VERSION",         // What it needs at least.
	"ENABLE_NODELOCAL_DNS", // It is made from KUBE_ENABLE_NODELOCAL_DNS.
	"KUBECONFIG_TOKEN",     // Not used.
	"KUBELET_IMAGE",        // Not used.
	"USER",                 // root.
)

// ownVariables are those that the script sets itself.
var ownVariables = regexp.MustCompile(`_(PIDS?|LOG|LOGFILE|SCRAPE_DIR)$`)

// Each variable that upstream's script reads is passed, refused, or known to do nothing.
func TestScriptVariables(t *testing.T) {
	pattern := regexp.MustCompile(`\$\{([A-Z][A-Z0-9_]*):?-`)
	read := sets.New[string]()
	for _, file := range []string{"../../../hack/local-up-cluster.sh", "../../../hack/lib/etcd.sh"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range pattern.FindAllStringSubmatch(string(text), -1) {
			if !ownVariables.MatchString(match[1]) {
				read.Insert(match[1])
			}
		}
	}
	known := sets.New(slices.Concat(scriptVariables, scriptFileVariables)...)
	for _, refused := range refusedVariables {
		for _, name := range refused.names {
			if known.Has(name) {
				t.Errorf("%s is passed, or refused twice", name)
			}
			known.Insert(name)
		}
	}
	known.Delete("EMULATED_VERSION", "GATES", "NODES") // Read in another way, and not read.
	if unknown := read.Difference(known).Difference(unusedVariables); unknown.Len() > 0 {
		t.Errorf("the script reads %q: pass or refuse them", sets.List(unknown))
	}
	if gone := known.Union(unusedVariables).Difference(read); gone.Len() > 0 {
		t.Errorf("the script does not read %q", sets.List(gone))
	}
}

// The documentation has a row for each variable that is passed or refused.
func TestScriptVariablesDocumented(t *testing.T) {
	page, err := filepath.EvalSymlinks("localup.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(page), "../../../docs/how-to/run-local-up-cluster.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := sets.New(slices.Concat(scriptVariables, scriptFileVariables)...)
	for _, refused := range refusedVariables {
		want.Insert(refused.names...)
	}
	want.Delete("GATES", "NODES")
	rows := regexp.MustCompile(`(?m)^\|.*\|$`).FindAllString(string(text), -1)
	got := sets.New[string]()
	for _, match := range regexp.MustCompile("`([A-Z][A-Z0-9_]+)`").FindAllStringSubmatch(strings.Join(rows, "\n"), -1) {
		got.Insert(match[1])
	}
	if diff := cmp.Diff(sets.List(want), sets.List(got)); diff != "" {
		t.Error(diff)
	}
}
