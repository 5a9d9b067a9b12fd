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
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/component-helpers/node/maintenance"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/coordination/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/lifecycle"
	lifecyclevalidation "k8s.io/kubernetes/pkg/apis/lifecycle/validation"
	"k8s.io/kubernetes/pkg/features"

	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/lifecycle/install"
)

// conversions is the number of random inputs of each kind.
const conversions = 300

// runConvert runs "convert" without a cluster. It returns what is written, and whether the command
// succeeded.
func runConvert(t *testing.T, args ...string) (string, bool) {
	t.Helper()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	type failed struct{}
	cmdutil.BehaviorOnFatal(func(string, int) { panic(failed{}) })
	defer cmdutil.DefaultBehaviorOnFatal()
	succeeded := false
	func() {
		defer func() {
			if r := recover(); r != nil {
				if _, expected := r.(failed); !expected {
					panic(r)
				}
			}
		}()
		cmd := newCommand(streams)
		cmd.SetArgs(append([]string{"convert"}, args...))
		succeeded = cmd.Execute() == nil
	}()
	return out.String(), succeeded
}

// texts are values that fit a field, or do not.
type texts struct{ *rand.Rand }

func (r texts) oneOf(choices ...string) string { return choices[r.IntN(len(choices))] }

func (r texts) name() string {
	return r.oneOf("a", "node-1", "node.example.com", "node-1", "web-0", "rack-7", "a.b", "Node", "node_1", "-a", "a/b", "", "12", strings.Repeat("x", 253), strings.Repeat("x", 254), "ä", "a b")
}

func (r texts) selector() string {
	return r.oneOf("app=web", "app in (a,b),!c", "a!=b,c", "a>1", "a=1,a=2", "=", "", "a b", "x/y/z=1", "A=B", "a,b,c,d,e,f,g,h,i,j,k", "k="+strings.Repeat("v", 64), "k="+strings.Repeat("v", 63))
}

func (r texts) participant() string {
	return r.oneOf("example.com/drain", "example.com/Drain_1", "drain.example.com", "example.com", "a", "x.k8s.io/y", "kubernetes.io/y", "a/b/c", "", "EXAMPLE.com/x", strings.Repeat("a.", 126)+"a/b", "example.com/"+strings.Repeat("k", 63), "example.com/"+strings.Repeat("k", 64))
}

func (r texts) uid() string {
	return r.oneOf("6f1c1d1e-0b0a-4a57-9b8f-1c6f7d7e2a10", "8d0b2c1e-76d7-4f0b-b6d8-52a8e1c0d9f4", "8D0B2C1E-76D7-4F0B-B6D8-52A8E1C0D9F4", "x", "")
}

func (r texts) medik8s() string {
	return fmt.Sprintf(`{apiVersion: nodemaintenance.medik8s.io/v1beta1, kind: NodeMaintenance, metadata: {%s: %q, labels: {%q: %q}}, spec: {nodeName: %q, reason: %q}}`,
		r.oneOf("name", "name", "name", "generateName"), r.name(), r.oneOf("a", "a/b", "", "a b"), r.oneOf("x", "x y", ""), r.name(),
		r.oneOf("", "disk", strings.Repeat("r", 1024), strings.Repeat("r", 1025), strings.Repeat("ä", 1024), "two\nlines"))
}

func (r texts) nvidia() string {
	return fmt.Sprintf(`{apiVersion: maintenance.nvidia.com/v1alpha1, kind: NodeMaintenance, metadata: {name: %q, namespace: a}, spec: {requestorID: %q, nodeName: %q, cordon: %s, drainSpec: {podSelector: %q}}}`,
		r.name(), r.oneOf("a.example.com", strings.Repeat("r", 1100)), r.name(), r.oneOf("true", "false"), r.selector())
}

func (r texts) request() string {
	return fmt.Sprintf(`{apiVersion: lifecycle.k8s.io/v1alpha1, kind: EvictionRequest, metadata: {name: a, namespace: %q}, spec: {target: {pod: {name: %q, uid: %q}}, requester: %q, intent: Eviction}}`,
		r.oneOf("shop", "shop", "", "Shop"), r.name(), r.uid(), r.participant())
}

func (r texts) pod() string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}, spec: {containers: [{name: c, image: d}], evictionResponders: [{name: %q, priority: %d}, {name: %q, priority: %d}]}}`,
		r.participant(), r.IntN(120000), r.participant(), r.IntN(120000))
}

func (r texts) ownRequest() string {
	return fmt.Sprintf(`{apiVersion: coordination.k8s.io/v1alpha1, kind: EvictionRequest, metadata: {name: %q, namespace: shop}, spec: {target: {pod: {name: %q, uid: %q}}, requesters: [{name: %q}, {name: %q}]}}`,
		r.uid(), r.name(), r.uid(), r.participant(), r.participant())
}

func (r texts) ownPod() string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b, annotations: {interceptor.evictionrequest.coordination.k8s.io/priority_audit.example.com: %q}}, spec: {containers: [{name: c, image: d}], evictionInterceptors: [{name: %q}, {name: %q}]}}`,
		r.oneOf("0", "5000", "100000", "100001", "x"), r.participant(), r.participant())
}

func (r texts) drainOfNode() []string {
	return []string{"kubectl", "drain", r.name(), "--timeout=" + r.oneOf("5m", "0", "-1s"), "--dry-run=" + r.oneOf("none", "client")}
}

func (r texts) drainOfSelector() []string {
	return []string{"kubectl", "drain", "-l", r.selector(), "--pod-selector=" + r.selector(), r.oneOf("--force", "--grace-period=3", "--disable-eviction")}
}

// TestConvertWritesValidObjects validates what is written for random input as the API server does.
func TestConvertWritesValidObjects(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EvictionRequestAPI, true)
	toLifecycle := []string{"--to=lifecycle.k8s.io/v1alpha1"}
	for name, input := range map[string]struct {
		generate func(texts) string
		args     []string
		command  func(texts) []string
	}{
		"medik8s":          {generate: texts.medik8s},
		"nvidia":           {generate: texts.nvidia},
		"request":          {generate: texts.request},
		"pod":              {generate: texts.pod},
		"drain of a node":  {command: texts.drainOfNode},
		"drain of several": {command: texts.drainOfSelector},
		"own-request":      {generate: texts.ownRequest, args: toLifecycle},
		"own-pod":          {generate: texts.ownPod, args: toLifecycle},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "input.yaml")
			random := texts{rand.New(rand.NewPCG(37, 36))}
			written, refused := 0, 0
			for range conversions {
				var text string
				var args []string
				if input.command != nil {
					args = append([]string{"--"}, input.command(random)...)
					text = fmt.Sprintf("%q", args)
				} else {
					text = input.generate(random)
					if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
					args = append([]string{"-f", file}, input.args...)
				}
				out, succeeded := runConvert(t, args...)
				if !succeeded {
					refused++
					if out != "" {
						t.Errorf("%s is refused, but %s is written", text, out)
					}
					continue
				}
				written++
				for _, document := range strings.Split(out, "---\n") {
					validateWritten(t, text, document)
				}
			}
			if min(written, refused) < conversions/50 {
				t.Errorf("%d inputs were converted, %d refused: the test should see both", written, refused)
			}
		})
	}
}

func validateWritten(t *testing.T, text, document string) {
	t.Helper()
	if strings.TrimSpace(document) == "" {
		return
	}
	object, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode([]byte(document), nil, nil)
	if err != nil {
		t.Fatalf("%v:\n%s", err, document)
	}
	legacyscheme.Scheme.Default(object)
	errs := legacyscheme.Scheme.Validate(t.Context(), nil, object)
	internal, err := legacyscheme.Scheme.UnsafeConvertToVersion(complete(object), runtime.InternalGroupVersioner)
	if err != nil {
		t.Fatal(err)
	}
	switch o := internal.(type) {
	case *coordination.NodeMaintenance:
		if o.Name == "" {
			o.Name = "generated"
		}
		errs = append(errs, validation.ValidateNodeMaintenanceCreate(o)...)
	case *coordination.EvictionRequest:
		if o.Namespace == "" {
			o.Namespace = "default"
		}
		errs = append(errs, validation.ValidateEvictionRequestCreate(o)...)
	case *lifecycle.EvictionRequest:
		errs = append(errs, lifecyclevalidation.ValidateEvictionRequest(o)...)
	case *core.Pod:
		errs = append(errs, corevalidation.ValidatePodCreate(o, corevalidation.PodValidationOptions{})...)
	default:
		errs = append(errs, field.InternalError(nil, fmt.Errorf("%T is written", o)))
	}
	if len(errs) > 0 {
		t.Errorf("%v\ninput: %s\noutput:\n%s", errs.ToAggregate(), text, document)
	}
}

// complete adds the standard entries to a drain plan, as admission does.
func complete(object runtime.Object) runtime.Object {
	if nm, isMaintenance := object.(*coordinationv1alpha1.NodeMaintenance); isMaintenance {
		nm.Spec.DrainPlan = maintenance.CompletePlan(nm.Spec.DrainPlan)
	}
	return object
}
