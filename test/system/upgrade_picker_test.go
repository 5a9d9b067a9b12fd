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

package system

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/downscalepodpicker"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/kubernetes/test/utils/controlplane"
	"k8s.io/utils/ptr"
)

// The Deployments of the test. All have a picker. The base only reads the first, and writes the second.
const (
	pickerRead    = "read"
	pickerWritten = "written"
)

// pickerServer is a picker that runs beside the control plane. It chooses the last pods by name.
type pickerServer struct {
	*httptest.Server
	lock  sync.Mutex
	asked []downscalepodpicker.Question
}

func startPickerServer(tCtx ktesting.TContext) *pickerServer {
	p := &pickerServer{}
	p.Server = httptest.NewServer(downscalepodpicker.NewHandler(func(_ context.Context, q downscalepodpicker.Question) (downscalepodpicker.Answer, error) {
		p.lock.Lock()
		defer p.lock.Unlock()
		p.asked = append(p.asked, q)
		names := slices.Sorted(slices.Values(q.Candidates))
		return downscalepodpicker.Answer{Chosen: names[len(names)-q.Pods:]}, nil
	}))
	tCtx.Cleanup(p.Close)
	return p
}

func (p *pickerServer) address() *net.TCPAddr { return p.Listener.Addr().(*net.TCPAddr) }

// questions returns how many questions there were since the last call.
func (p *pickerServer) questions() int {
	p.lock.Lock()
	defer p.lock.Unlock()
	count := len(p.asked)
	p.asked = nil
	return count
}

// pickerUpgrade is the state that the steps share.
type pickerUpgrade struct {
	plane      *controlplane.ControlPlane
	base, fork controlplane.Release
	picker     *pickerServer
}

// TestPickerUpgrade runs the base and the fork in turn on one etcd, with Deployments that have a
// downscale pod picker. Nothing but the effect is lost, unless the base writes an object; and no pod is
// replaced.
func TestPickerUpgrade(t *testing.T) { testPickerUpgrade(ktesting.Init(t)) }
func testPickerUpgrade(tCtx ktesting.TContext) {
	p := findPrograms(tCtx)
	tCtx, plane := newControlPlane(tCtx, p, "pickers")
	u := &pickerUpgrade{plane: plane, picker: startPickerServer(tCtx)}
	u.base = controlplane.Release{Name: "the pristine base", Bin: p.base}
	u.fork = controlplane.Release{
		Name: "the fork", Bin: p.fork, FeatureGates: "DownscalePodPicker=true",
		ControllerManagerArgs: []string{fmt.Sprintf("--downscale-pod-picker-allowed-cidrs=127.0.0.1/32:%d", u.picker.address().Port)},
	}
	off := u.fork
	off.Name, off.FeatureGates = "the fork with the gate off", ""

	tCtx.Log("The base does not know the field.")
	start(tCtx, plane, u.base)
	createNamespace(tCtx)
	for _, name := range []string{pickerRead, pickerWritten} {
		create(tCtx, tCtx.Client().AppsV1().Deployments(tCtx.Namespace()), newDeployment(newPod(name), 6))
		u.await(tCtx, name, 6)
		u.setPicker(tCtx, name)
		u.expectPickers(tCtx, name, false)
	}

	tCtx.Log("Upgrade: Deployments get a picker, without a rollout, and it is asked.")
	u.restart(tCtx, u.fork)
	for _, name := range []string{pickerRead, pickerWritten} {
		before := u.await(tCtx, name, 6)
		u.setPicker(tCtx, name)
		u.expectPickers(tCtx, name, true)
		if after := u.await(tCtx, name, 6); !slices.Equal(before, after) {
			tCtx.Fatalf("pods %q were replaced by %q", before, after)
		}
		u.scale(tCtx, name, before, 5, true)
	}

	tCtx.Log("An older client that applies its fields, and one that updates the scale, keep the picker.")
	u.apply(tCtx, pickerRead)
	u.expectPickers(tCtx, pickerRead, true)

	tCtx.Log("The controller manager of the base asks nobody. A ReplicaSet that it scales loses its picker, the Deployment keeps it.")
	tCtx.ExpectNoError(plane.StopControllerManager())
	tCtx.ExpectNoError(plane.StartControllerManager(tCtx, u.base))
	u.scale(tCtx, pickerRead, u.await(tCtx, pickerRead, 5), 4, false)
	u.expectPicker(tCtx, pickerRead, true)
	u.expectPickers(tCtx, pickerWritten, true)

	tCtx.Log("With the gate off, nobody is asked, and fields that are there stay.")
	u.restart(tCtx, off)
	u.scale(tCtx, pickerRead, u.await(tCtx, pickerRead, 4), 3, false)
	u.expectPicker(tCtx, pickerRead, true)
	u.expectPickers(tCtx, pickerWritten, true)

	tCtx.Log("Downgrade: the field is not shown. One Deployment is written.")
	u.restart(tCtx, u.base)
	read, written := u.await(tCtx, pickerRead, 3), u.await(tCtx, pickerWritten, 5)
	u.expectPickers(tCtx, pickerRead, false)
	patchDeployment(tCtx, pickerWritten, `{"metadata":{"labels":{"changed":"true"}}}`)

	tCtx.Log("Upgrade again: what was only read has its picker, and passes it on, without a rollout.")
	u.restart(tCtx, u.fork)
	u.expectPickers(tCtx, pickerWritten, false)
	if pods := u.await(tCtx, pickerWritten, 5); !slices.Equal(pods, written) {
		tCtx.Fatalf("pods %q were replaced by %q", written, pods)
	}
	u.expectPickers(tCtx, pickerRead, true)
	u.scale(tCtx, pickerRead, read, 2, true)
}

// restart replaces the API server first, and the controller manager then.
func (u *pickerUpgrade) restart(tCtx ktesting.TContext, release controlplane.Release) {
	tCtx.Helper()
	tCtx.ExpectNoError(u.plane.StopControllerManager())
	tCtx.ExpectNoError(u.plane.StopAPIServer())
	start(tCtx, u.plane, release)
}

// await makes the pods of a Deployment ready until there are so many, and returns their names.
func (u *pickerUpgrade) await(tCtx ktesting.TContext, name string, count int) (names []string) {
	tCtx.Helper()
	awaitReplicas(tCtx, name, replicas{count, count, count}, makePodsReady)
	for _, pod := range podsOf(tCtx, name) {
		if pod.DeletionTimestamp == nil { // One may be about to be gone.
			names = append(names, pod.Name)
		}
	}
	return names
}

func (u *pickerUpgrade) setPicker(tCtx ktesting.TContext, name string) {
	tCtx.Helper()
	patchDeployment(tCtx, name, fmt.Sprintf(`{"spec":{"downscalePodPicker":{"http":{"host":"127.0.0.1","port":%d}}}}`, u.picker.address().Port))
}

// scale scales a Deployment down, and checks whether the picker has decided.
func (u *pickerUpgrade) scale(tCtx ktesting.TContext, name string, pods []string, count int, asked bool) {
	tCtx.Helper()
	u.picker.questions()
	patchDeployment(tCtx, name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, count))
	left := u.await(tCtx, name, count)
	if got := u.picker.questions() > 0; got != asked {
		tCtx.Fatalf("the picker was asked: %t, must be %t", got, asked)
	}
	if asked && !slices.Equal(left, pods[:count]) {
		tCtx.Fatalf("pods %q are left of %q, and the picker chose the last ones", left, pods)
	}
}

// expectPicker fails unless the Deployment has a picker, or has none.
func (u *pickerUpgrade) expectPicker(tCtx ktesting.TContext, name string, want bool) {
	tCtx.Helper()
	d, err := tCtx.Client().AppsV1().Deployments(tCtx.Namespace()).Get(tCtx, name, metav1.GetOptions{})
	tCtx.ExpectNoError(err)
	if got := d.Spec.DownscalePodPicker != nil; got != want {
		tCtx.Fatalf("Deployment %s has a picker: %t, must be %t", name, got, want)
	}
}

// expectPickers waits until the Deployment and its ReplicaSets have a picker, or none of them.
func (u *pickerUpgrade) expectPickers(tCtx ktesting.TContext, name string, want bool) {
	tCtx.Helper()
	await(tCtx, fmt.Sprintf("pickers of %s: %t", name, want), func(tCtx ktesting.TContext) {
		d, err := tCtx.Client().AppsV1().Deployments(tCtx.Namespace()).Get(tCtx, name, metav1.GetOptions{})
		tCtx.ExpectNoError(err)
		sets := replicaSetsOf(tCtx, name)
		if got := d.Spec.DownscalePodPicker != nil; got != want || d.Status.ObservedGeneration != d.Generation || len(sets) != 1 {
			tCtx.Fatalf("Deployment %s has a picker: %t, observed generation %d of %d, %d ReplicaSets", name, got, d.Status.ObservedGeneration, d.Generation, len(sets))
		}
		if got := sets[0].Spec.DownscalePodPicker != nil; got != want {
			tCtx.Fatalf("ReplicaSet %s has a picker: %t", sets[0].Name, got)
		}
	})
}

// apply applies a Deployment as a client that does not know the field, and updates its scale.
func (u *pickerUpgrade) apply(tCtx ktesting.TContext, name string) {
	tCtx.Helper()
	deployments := tCtx.Client().AppsV1().Deployments(tCtx.Namespace())
	applied := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q},"spec":{"minReadySeconds":0,"paused":false}}`, name)
	_, err := deployments.Patch(tCtx, name, types.ApplyPatchType, []byte(applied), metav1.PatchOptions{FieldManager: "older-client", Force: ptr.To(true)})
	tCtx.ExpectNoError(err, "applying Deployment %s", name)
	scale, err := deployments.GetScale(tCtx, name, metav1.GetOptions{})
	tCtx.ExpectNoError(err, "reading the scale")
	scale.ResourceVersion = "" // The controller of Deployments writes too.
	_, err = deployments.UpdateScale(tCtx, name, scale, metav1.UpdateOptions{})
	tCtx.ExpectNoError(err, "updating the scale")
}
