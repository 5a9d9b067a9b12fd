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

package job

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/warning"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	podtest "k8s.io/kubernetes/pkg/api/pod/testing"
	"k8s.io/kubernetes/pkg/apis/batch"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/ptr"
)

// recordedWarnings records what clients are told.
type recordedWarnings struct{ texts []string }

func (r *recordedWarnings) AddWarning(_, text string) { r.texts = append(r.texts, text) }

// TestUpdatesKeepEvictionInterceptors: a client with other types omits the list of the template, which no Job may change.
// What it may change of the template of a suspended Job, it still may.
func TestUpdatesKeepEvictionInterceptors(t *testing.T) {
	some, others := []api.EvictionInterceptor{{Name: "migrate.example.com"}, {Name: "wait.example.com"}}, []api.EvictionInterceptor{{Name: "other.example.com"}}
	running := func(job *batch.Job) { job.Status.StartTime, job.Status.Active = &metav1.Time{}, 1 }
	suspended := func(job *batch.Job) { job.Spec.Suspend = ptr.To(true) }
	for name, test := range map[string]struct {
		old            func(*batch.Job)
		stored         []api.EvictionInterceptor
		update         func(*batch.Job)
		want           []api.EvictionInterceptor
		warns, refused bool
		generation     int64
	}{
		"an annotation": {old: running, stored: some, want: some, warns: true, generation: 1, update: func(job *batch.Job) {
			job.Annotations, job.Spec.Template.Spec.EvictionInterceptors = map[string]string{"a": "b"}, nil
		}},
		"a finalizer": {old: running, stored: some, want: some, warns: true, generation: 1, update: func(job *batch.Job) {
			job.Finalizers, job.Spec.Template.Spec.EvictionInterceptors = []string{"example.com/a"}, nil
		}},
		"it is suspended": {old: running, stored: some, want: some, warns: true, generation: 2, update: func(job *batch.Job) {
			job.Spec.Suspend, job.Spec.Template.Spec.EvictionInterceptors = ptr.To(true), nil
		}},
		"it is resumed, elsewhere": {old: suspended, stored: some, want: some, warns: true, generation: 2, update: func(job *batch.Job) {
			job.Spec.Suspend, job.Spec.Template.Spec.EvictionInterceptors = ptr.To(false), nil
			job.Spec.Template.Spec.NodeSelector = map[string]string{"rack": "7"}
		}},
		"emptied": {old: running, stored: some, want: some, warns: true, generation: 1, update: func(job *batch.Job) {
			job.Spec.Template.Spec.EvictionInterceptors = []api.EvictionInterceptor{}
		}},
		"sent":  {old: running, stored: some, want: some, generation: 1, update: func(*batch.Job) {}},
		"none":  {old: running, generation: 1, update: func(*batch.Job) {}},
		"added": {old: running, want: some, refused: true, generation: 2, update: func(job *batch.Job) { job.Spec.Template.Spec.EvictionInterceptors = some }},
		"changed, while it is suspended": {old: suspended, stored: some, want: others, refused: true, generation: 2, update: func(job *batch.Job) {
			job.Spec.Template.Spec.EvictionInterceptors = others
		}},
	} {
		for _, enabled := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, gate on %t", name, enabled), func(t *testing.T) {
				featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EvictionRequestAPI, true)
				labels := map[string]string{"a": "b"}
				old := &batch.Job{
					ObjectMeta: metav1.ObjectMeta{Name: "training", Namespace: metav1.NamespaceDefault, ResourceVersion: "1", Generation: 1},
					Spec: batch.JobSpec{
						Selector: &metav1.LabelSelector{MatchLabels: labels}, ManualSelector: ptr.To(true),
						Template: api.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podtest.MakePodSpec(podtest.SetRestartPolicy(api.RestartPolicyNever))},
					},
				}
				old.Spec.Template.Spec.EvictionInterceptors = test.stored
				test.old(old)
				job := old.DeepCopy()
				test.update(job)
				if !enabled && test.stored != nil {
					featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EvictionRequestAPI, false)
				}
				recorder := &recordedWarnings{}
				ctx := warning.WithWarningRecorder(genericapirequest.NewDefaultContext(), recorder)
				Strategy.PrepareForUpdate(ctx, job, old)
				if diff := cmp.Diff(test.want, job.Spec.Template.Spec.EvictionInterceptors); diff != "" {
					t.Errorf("unexpected list (-want, +got):\n%s", diff)
				}
				if job.Generation != test.generation {
					t.Errorf("generation %d, want %d", job.Generation, test.generation)
				}
				if said := strings.Join(recorder.texts, "\n"); test.warns != strings.HasPrefix(said, "spec.template.spec.evictionInterceptors: kept, although the update omits it, because the template of a Job is immutable") || !test.warns && said != "" {
					t.Errorf("warnings %q", said)
				}
				if errs := Strategy.ValidateUpdate(ctx, job, old); (len(errs) > 0) != test.refused {
					t.Errorf("errors %v", errs)
				}
				if warnings := Strategy.WarningsOnUpdate(ctx, job, old); strings.Contains(strings.Join(warnings, "\n"), "removes the interceptors") {
					t.Errorf("warnings %q", warnings)
				}
			})
		}
	}
}
