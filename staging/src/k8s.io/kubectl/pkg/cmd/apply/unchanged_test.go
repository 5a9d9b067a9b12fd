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

package apply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest/fake"
	cmdtesting "k8s.io/kubectl/pkg/cmd/testing"
)

// TestApplyUnchanged applies a manifest with a drain plan, which kube-apiserver has completed, again.
func TestApplyUnchanged(t *testing.T) {
	const name = "pool-a"
	entry := func(priority int) string { return fmt.Sprintf(`{"podType":"Default","podPriority":%d}`, priority) }
	manifest := func(kind, plan string) string {
		return fmt.Sprintf(`{"apiVersion":"coordination.k8s.io/v1alpha1","kind":%q,"metadata":{"name":%q},"spec":{"stage":"Drain","drainPlan":[%s]}}`, kind, name, plan)
	}
	live := func(version, plan string) []byte {
		object := map[string]any{}
		if err := json.Unmarshal([]byte(manifest("NodeMaintenance", plan)), &object); err != nil {
			t.Fatal(err)
		}
		object["metadata"] = map[string]any{"name": name, "uid": "1", "resourceVersion": version, "annotations": map[string]any{
			"kubectl.kubernetes.io/last-applied-configuration": manifest("NodeMaintenance", entry(7)) + "\n",
		}}
		encoded, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	complete := entry(7) + "," + entry(1000000000)
	for what, test := range map[string]struct {
		version, dryRun, want string
	}{
		"the server keeps what is stored": {version: "5", want: "nodemaintenance.coordination.k8s.io/pool-a unchanged\n"},
		"the server stores something":     {version: "6", want: "nodemaintenance.coordination.k8s.io/pool-a configured\n"},
		"a dry run stores nothing":        {version: "5", dryRun: "server", want: "nodemaintenance.coordination.k8s.io/pool-a configured (server dry run)\n"},
	} {
		t.Run(what, func(t *testing.T) {
			cmdtesting.InitTestErrorHandler(t)
			tf := cmdtesting.NewTestFactory()
			defer tf.Cleanup()
			patched := false
			tf.UnstructuredClient = &fake.RESTClient{
				NegotiatedSerializer: resource.UnstructuredPlusDefaultContentConfig().NegotiatedSerializer,
				Client: fake.CreateHTTPClient(func(req *http.Request) (*http.Response, error) {
					body := live("5", complete)
					switch {
					case strings.HasSuffix(req.URL.Path, "/nodemaintenances/"+name) && req.Method == http.MethodGet:
					case strings.HasSuffix(req.URL.Path, "/nodemaintenances/"+name) && req.Method == http.MethodPatch:
						patched = true
						body = live(test.version, complete)
					default:
						t.Fatalf("unexpected request: %s %s", req.Method, req.URL)
					}
					return &http.Response{StatusCode: http.StatusOK, Header: cmdtesting.DefaultHeader(), Body: io.NopCloser(bytes.NewReader(body))}, nil
				}),
			}
			tf.OpenAPISchemaFunc, tf.OpenAPIV3ClientFunc = AlwaysErrorsOpenAPISchema.OpenAPISchemaFn, AlwaysErrorsOpenAPISchema.OpenAPIV3ClientFunc
			tf.ClientConfigVal = cmdtesting.DefaultClientConfig()
			file := filepath.Join(t.TempDir(), "maintenance.json")
			if err := os.WriteFile(file, []byte(manifest("NodeMaintenance", entry(7))), 0o600); err != nil {
				t.Fatal(err)
			}
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			cmd := NewCmdApply("kubectl", tf, streams)
			for flag, value := range map[string]string{"filename": file, "validate": "false", "dry-run": test.dryRun} {
				if value == "" {
					continue
				}
				if err := cmd.Flags().Set(flag, value); err != nil {
					t.Fatal(err)
				}
			}
			cmd.Run(cmd, nil)
			if !patched || out.String() != test.want {
				t.Errorf("printed %q, want %q; patched: %t", out.String(), test.want, patched)
			}
		})
	}
}
