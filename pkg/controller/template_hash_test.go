/*
Copyright The Kubernetes Authors.

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

package controller

import (
	"bytes"
	"fmt"
	"hash"
	"hash/fnv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"
)

// written keeps what is hashed.
type written struct {
	hash.Hash
	bytes.Buffer
}

func (w *written) Reset()                         { w.Buffer.Reset() }
func (w *written) Write(text []byte) (int, error) { return w.Buffer.Write(text) }

// TestHashTemplateIsUpstreams: upstream hashes the dump of a type that lacks our field.
func TestHashTemplateIsUpstreams(t *testing.T) {
	template := &v1.PodTemplateSpec{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "web", Image: "nginx"}}}}
	const ours = " EvictionInterceptors:([]v1.EvictionInterceptor)<nil>"
	text := dump.ForHash(*template)
	if strings.Count(text, ours) != 1 {
		t.Fatalf("the dump does not name our field once: %s", text)
	}
	w := &written{}
	w.WriteString("something before")
	hashTemplate(w, template)
	if diff := cmp.Diff(strings.Replace(text, ours, "", 1), w.String()); diff != "" {
		t.Errorf("unexpected text to hash (-want, +got):\n%s", diff)
	}
	upstreams := fnv.New32a()
	fmt.Fprint(upstreams, strings.Replace(text, ours, "", 1))
	if got, want := ComputeHash(template, nil), rand.SafeEncodeString(fmt.Sprint(upstreams.Sum32())); got != want {
		t.Errorf("the hash is %s, want %s", got, want)
	}
}

// Interceptors count, and so does a text that looks like the end of the dump.
func TestComputeHashOfInterceptors(t *testing.T) {
	hashes := map[string]string{}
	for name, template := range map[string]*v1.PodTemplateSpec{
		"none":    {},
		"one":     {Spec: v1.PodSpec{EvictionInterceptors: []v1.EvictionInterceptor{{Name: "a.example.com"}}}},
		"another": {Spec: v1.PodSpec{EvictionInterceptors: []v1.EvictionInterceptor{{Name: "b.example.com"}}}},
		"text":    {Spec: v1.PodSpec{EvictionInterceptors: []v1.EvictionInterceptor{{Name: noInterceptors}}}},
		"braces":  {Spec: v1.PodSpec{EvictionInterceptors: []v1.EvictionInterceptor{{Name: "}}"}}}},
	} {
		hash := ComputeHash(template, nil)
		if other, found := hashes[hash]; found {
			t.Errorf("%s and %s have the hash %s", name, other, hash)
		}
		hashes[hash] = name
	}
}
