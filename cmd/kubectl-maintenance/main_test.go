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

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

func TestHelp(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	var help strings.Builder
	cmd := newCommand(streams)
	cmd.SetOut(&help)
	cmd.SetArgs([]string{"start", "--help"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"  kubectl maintenance start (NODE...", "--context string", "--kubeconfig string"} {
		if !strings.Contains(help.String(), text) {
			t.Errorf("%q is missing in the help:\n%s", text, help.String())
		}
	}
}

// TestKubeconfig calls the server selected by the flags, which does not serve maintenances.
func TestKubeconfig(t *testing.T) {
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path
		http.NotFound(w, r)
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, []byte(`{apiVersion: v1, kind: Config, current-context: other,
		clusters: [{name: c, cluster: {server: "`+server.URL+`"}}, {name: other, cluster: {server: "http://127.0.0.1:1"}}],
		contexts: [{name: it, context: {cluster: c}}, {name: other, context: {cluster: other}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var failure string
	cmdutil.BehaviorOnFatal(func(message string, code int) {
		failure = message
		if code != 1 {
			t.Errorf("exit code %d", code)
		}
	})
	defer cmdutil.DefaultBehaviorOnFatal()
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	cmd := newCommand(streams)
	cmd.SetArgs([]string{"status", "--kubeconfig", kubeconfig, "--context", "it"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	if want := "/apis/coordination.k8s.io/v1alpha1"; asked != want {
		t.Errorf("asked for %q, want %q", asked, want)
	}
	if !strings.Contains(failure, "the server does not serve NodeMaintenance") {
		t.Errorf("failed with %q", failure)
	}
}

// TestCompletesOnlyOwnMaintenances completes names on a server that serves the NodeMaintenances of
// another project, and not ours.
func TestCompletesOnlyOwnMaintenances(t *testing.T) {
	const group = `{"name": "nodemaintenance.medik8s.io", "versions": [{"groupVersion": "nodemaintenance.medik8s.io/v1beta1", "version": "v1beta1"}]}`
	discovered := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			fmt.Fprint(w, `{"kind": "APIVersions", "versions": ["v1"]}`)
		case "/api/v1":
			fmt.Fprint(w, `{"kind": "APIResourceList", "groupVersion": "v1", "resources": []}`)
		case "/apis":
			discovered = true
			fmt.Fprint(w, `{"kind": "APIGroupList", "groups": [`+group+`]}`)
		case "/apis/nodemaintenance.medik8s.io/v1beta1":
			fmt.Fprint(w, `{"kind": "APIResourceList", "groupVersion": "nodemaintenance.medik8s.io/v1beta1", "resources": [
				{"name": "nodemaintenances", "singularName": "nodemaintenance", "kind": "NodeMaintenance", "shortNames": ["nm"], "verbs": ["get", "list"]}]}`)
		default:
			t.Errorf("asked for %s", r.URL.Path)
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	for _, command := range []string{"complete", "cancel", "status", "watch"} {
		var out strings.Builder
		streams, _, _, _ := genericiooptions.NewTestIOStreams()
		cmd := newCommand(streams)
		cmd.SetOut(&out)
		cmd.SetErr(io.Discard)
		cmd.SetArgs([]string{"__complete", command, "--server", server.URL, "--cache-dir", t.TempDir(), ""})
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out.String(), ":") {
			t.Errorf("%s: completed %q", command, out.String())
		}
	}
	if !discovered {
		t.Error("the server was not asked")
	}
}
