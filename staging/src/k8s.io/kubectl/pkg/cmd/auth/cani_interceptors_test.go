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

package auth

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/rest/fake"
	cmdtesting "k8s.io/kubectl/pkg/cmd/testing"
	"k8s.io/kubectl/pkg/scheme"
)

// TestCanIIntercept verifies that the virtual resource evictioninterceptors keeps its group, and a
// name its slash. Other resources that the server does not list are sent unchanged.
func TestCanIIntercept(t *testing.T) {
	for resource, test := range map[string]struct {
		want        string
		wantWarning bool
	}{
		"evictioninterceptors.coordination.k8s.io":                     {`"group":"coordination.k8s.io","resource":"evictioninterceptors"}`, false},
		"evictioninterceptors.coordination.k8s.io/saver.example.com":   {`"group":"coordination.k8s.io","resource":"evictioninterceptors","name":"saver.example.com"}`, false},
		"evictioninterceptors.coordination.k8s.io/example.com/migrate": {`"group":"coordination.k8s.io","resource":"evictioninterceptors","name":"example.com/migrate"}`, false},
		"evictioninterceptors.example.com/saver.example.com":           {`"verb":"intercept","resource":"evictioninterceptors.example.com","name":"saver.example.com"}`, true},
		"evictioninterceptors/saver.example.com":                       {`"verb":"intercept","resource":"evictioninterceptors","name":"saver.example.com"}`, true},
	} {
		t.Run(resource, func(t *testing.T) {
			factory := cmdtesting.NewTestFactory().WithNamespace("shop")
			defer factory.Cleanup()
			var asked string
			factory.Client = &fake.RESTClient{
				GroupVersion:         schema.GroupVersion{Version: "v1"},
				NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
				Client: fake.CreateHTTPClient(func(request *http.Request) (*http.Response, error) {
					body, err := io.ReadAll(request.Body)
					asked = string(body)
					return &http.Response{
						StatusCode: http.StatusOK,
						Body:       io.NopCloser(strings.NewReader(`{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`)),
					}, err
				}),
			}
			factory.ClientConfigVal = &restclient.Config{ContentConfig: restclient.ContentConfig{GroupVersion: &schema.GroupVersion{Version: "v1"}, ContentType: runtime.ContentTypeJSON}}
			var warnings bytes.Buffer
			options := &CanIOptions{}
			options.Out, options.ErrOut = io.Discard, &warnings
			if err := options.Complete(factory, []string{"intercept", resource}); err != nil {
				t.Fatal(err)
			}
			if allowed, err := options.RunAccessCheck(); !allowed || err != nil {
				t.Errorf("allowed: %t, error: %v", allowed, err)
			}
			if !strings.Contains(asked, test.want) || !strings.Contains(asked, `"namespace":"shop"`) {
				t.Errorf("sent %s, want %s", asked, test.want)
			}
			if warned := warnings.Len() > 0; warned != test.wantWarning {
				t.Errorf("warnings: %q", warnings.String())
			}
		})
	}
}
