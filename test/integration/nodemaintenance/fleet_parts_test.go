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

package nodemaintenance

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1alpha1 "k8s.io/api/coordination/v1alpha1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/component-helpers/node/maintenance"
	"k8s.io/kubernetes/test/integration/framework"
	"k8s.io/utils/ptr"
)

const (
	skip          = coordinationv1alpha1.NodeMaintenancePodSkip
	waitCompleted = coordinationv1alpha1.NodeMaintenancePodWaitCompleted
)

// TestFleetParts uses one API server for all tests.
func TestFleetParts(t *testing.T) {
	config := startFleetServer(t, framework.SharedEtcd(), true)
	for name, run := range map[string]func(*testing.T, *cluster){
		"parts that are refused":          testPartsRefused,
		"pods that stay, or end":          testPodPolicies,
		"volumes":                         testDrainedWhen,
		"replacements that are not ready": testSettle,
		"nodes that reboot, or do not":    testRebooted,
		"windows":                         testWindows,
		"zones":                           testZones,
		"kubectl": func(t *testing.T, c *cluster) {
			testFleetKubectl(t, c, config)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, config)
			t.Cleanup(c.removeLimits)
			run(t, c)
		})
	}
}

// withParts returns a rollout over the pool a that is changed.
func withParts(name string, change func(*coordinationv1alpha1.NodeMaintenanceSpec)) *coordinationv1alpha1.NodeMaintenance {
	m := newRollout(name, "a", atOnce(10))
	change(&m.Spec)
	return m
}

func testPartsRefused(t *testing.T, c *cluster) {
	type spec = coordinationv1alpha1.NodeMaintenanceSpec
	policies := func(policies ...coordinationv1alpha1.NodeMaintenancePodPolicy) func(*spec) {
		return func(s *spec) { s.PodPolicies = policies }
	}
	for name, test := range map[string]struct {
		change func(*spec)
		want   []string
	}{
		"an unknown action": {policies(coordinationv1alpha1.NodeMaintenancePodPolicy{Action: "Ignore"}), []string{"spec.podPolicies[0].action", `"Ignore"`, "Skip", "WaitCompleted"}},
		"no action":         {policies(coordinationv1alpha1.NodeMaintenancePodPolicy{}), []string{"spec.podPolicies[0].action", "Required"}},
		"all pods first":    {policies(coordinationv1alpha1.NodeMaintenancePodPolicy{Action: skip}, coordinationv1alpha1.NodeMaintenancePodPolicy{Action: waitCompleted}), []string{"spec.podPolicies[0]", "must be the last one"}},
		"invalid labels": {policies(coordinationv1alpha1.NodeMaintenancePodPolicy{
			Action: skip, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a b": ""}},
		}), []string{"spec.podPolicies[0].namespaceSelector", "a b"}},
		"no resource": {policies(coordinationv1alpha1.NodeMaintenancePodPolicy{Action: skip, ResourceNames: []v1.ResourceName{"a gpu"}}), []string{"spec.podPolicies[0].resourceNames[0]", `"a gpu"`, "nvidia.com/gpu"}},
		"unknown volumes": {func(s *spec) {
			s.DrainedWhen = &coordinationv1alpha1.NodeMaintenanceDrainedWhen{Volumes: "Gone"}
		}, []string{"spec.drainedWhen.volumes", `"Gone"`, "Detached"}},
		"no time for volumes": {func(s *spec) {
			s.DrainedWhen = &coordinationv1alpha1.NodeMaintenanceDrainedWhen{Volumes: coordinationv1alpha1.NodeMaintenanceVolumesDetached, TimeoutSeconds: ptr.To[int32](0)}
		}, []string{"spec.drainedWhen.timeoutSeconds", "greater than or equal to 1"}},
		"unknown replacements": {func(s *spec) {
			s.Rollout.Settle = &coordinationv1alpha1.NodeMaintenanceSettle{Replacements: "Some"}
		}, []string{"spec.rollout.settle.replacements", `"Some"`, "Available"}},
		"no replacements": {func(s *spec) {
			s.Rollout.Settle = &coordinationv1alpha1.NodeMaintenanceSettle{}
		}, []string{"spec.rollout.settle.replacements", "Required"}},
		"too long to settle": {func(s *spec) {
			s.Rollout.Settle = &coordinationv1alpha1.NodeMaintenanceSettle{Replacements: coordinationv1alpha1.NodeMaintenanceReplacementsAvailable, TimeoutSeconds: ptr.To[int32](86401)}
		}, []string{"spec.rollout.settle.timeoutSeconds", "less than or equal to 86400"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.client.CoordinationV1alpha1().NodeMaintenances().Create(t.Context(), withParts("refused", test.change), metav1.CreateOptions{})
			expectInvalid(t, err, test.want...)
		})
	}
	c.createMaintenance(withParts("m", func(s *spec) {
		s.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{{Action: skip}}
		s.DrainedWhen = &coordinationv1alpha1.NodeMaintenanceDrainedWhen{Volumes: coordinationv1alpha1.NodeMaintenanceVolumesDetached}
		s.Rollout.Settle = &coordinationv1alpha1.NodeMaintenanceSettle{Replacements: coordinationv1alpha1.NodeMaintenanceReplacementsAvailable}
	}))
	if spec := c.maintenance("m").Spec; ptr.Deref(spec.DrainedWhen.TimeoutSeconds, 0) != 600 || ptr.Deref(spec.Rollout.Settle.TimeoutSeconds, 0) != 600 {
		t.Errorf("defaults of %+v and %+v", spec.DrainedWhen, spec.Rollout.Settle)
	}
	for field, patch := range map[string]string{
		"podPolicies":    `{"spec":{"podPolicies":[{"action":"WaitCompleted"}]}}`,
		"drainedWhen":    `{"spec":{"drainedWhen":null}}`,
		"rollout.settle": `{"spec":{"rollout":{"settle":{"timeoutSeconds":60}}}}`,
	} {
		t.Run("changed: "+field, func(t *testing.T) {
			_, err := c.client.CoordinationV1alpha1().NodeMaintenances().Patch(t.Context(), "m", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			expectInvalid(t, err, "spec."+field, "immutable", "another NodeMaintenance")
		})
	}
}

// testPodPolicies leaves pods alone by their labels, namespaces and resources.
func testPodPolicies(t *testing.T, c *cluster) {
	c.createFleetNode("n1")
	label := fmt.Appendf(nil, `{"metadata":{"labels":{"team":%q}}}`, c.namespace)
	if _, err := c.client.CoreV1().Namespaces().Patch(t.Context(), c.namespace, types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
		t.Fatalf("labeling the namespace: %v", err)
	}
	requests := func(name v1.ResourceName) func(*v1.Pod) {
		return func(pod *v1.Pod) {
			list := v1.ResourceList{name: resource.MustParse("1")}
			pod.Spec.Containers[0].Resources = v1.ResourceRequirements{Requests: list, Limits: list}
		}
	}
	gpu := c.createPod(newPod("gpu", "n1", requests("nvidia.com/gpu")))
	kept := c.createPod(newPod("kept", "n1", withLabel("keep", "yes")))
	c.createPod(newPod("plain", "n1", requests("example.com/other")))
	c.createPod(newPod("elsewhere", "n1", withLabel("elsewhere", "yes")))
	labeled := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	c.startQuick()
	c.createMaintenance(withParts("m", func(s *coordinationv1alpha1.NodeMaintenanceSpec) {
		s.PodPolicies = []coordinationv1alpha1.NodeMaintenancePodPolicy{
			{Action: waitCompleted, ResourceNames: []v1.ResourceName{"nvidia.com/gpu"}},
			{Action: skip, PodSelector: labeled("keep", "yes"), NamespaceSelector: labeled("team", c.namespace)},
			{Action: skip, PodSelector: labeled("elsewhere", "yes"), NamespaceSelector: labeled("team", "another")},
		}
	}))
	c.await("the pods without a policy to leave", states{"pod/plain": "gone", "pod/elsewhere": "gone", "pod/gpu": "here", "pod/kept": "here"})
	c.awaitBlocker("m", maintenance.BlockerCompletion)
	c.awaitFleet("the drain to wait for the pod that ends by itself", map[string]string{"n1": "cordoned m:admitted"})
	c.expect("nobody to be asked", states{"request/gpu": "none", "request/kept": "none"})
	c.setPhase(gpu, v1.PodSucceeded)
	c.awaitFleet("the end of the drain", map[string]string{"n1": "cordoned m:drained"})
	c.eventually("the pods that are skipped in the status", func(context.Context) (bool, string) {
		drain := c.maintenance("m").Status.DrainStatus
		return drain.SkippedPods == 1 && drain.BlockerCount == 0, fmt.Sprintf("%+v", drain)
	})
	c.expectUntouched(kept)
}

// awaitBlocker waits until the maintenance has blockers of just this cause.
func (c *cluster) awaitBlocker(name string, cause maintenance.BlockerCause) {
	c.t.Helper()
	c.eventually("the blocker "+string(cause), func(context.Context) (bool, string) {
		drain := c.maintenance(name).Status.DrainStatus
		return drain.BlockerCount == 1 && string(drain.Blockers[0].Cause) == string(cause), fmt.Sprintf("%+v", drain.Blockers)
	})
}

// testDrainedWhen has a volume that is detached late, and one that is not.
func testDrainedWhen(t *testing.T, c *cluster) {
	attachments := c.client.StorageV1().VolumeAttachments()
	for _, node := range []string{"n1", "n2"} {
		c.createFleetNode(node)
		attachment := &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: "volume-of-" + node},
			Spec:       storagev1.VolumeAttachmentSpec{Attacher: "csi.example.com", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("volume-of-" + node)}},
		}
		if _, err := attachments.Create(t.Context(), attachment, metav1.CreateOptions{}); err != nil {
			t.Fatalf("creating a volume attachment: %v", err)
		}
		t.Cleanup(func() {
			if err := attachments.Delete(context.WithoutCancel(t.Context()), attachment.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("removing a volume attachment: %v", err)
			}
		})
	}
	c.createPod(newPod("pod", "n1"))
	c.startQuick()
	c.createMaintenance(withParts("m", func(s *coordinationv1alpha1.NodeMaintenanceSpec) {
		s.DrainedWhen = &coordinationv1alpha1.NodeMaintenanceDrainedWhen{Volumes: coordinationv1alpha1.NodeMaintenanceVolumesDetached, TimeoutSeconds: ptr.To[int32](86400)}
	}))
	c.await("the pod to leave", states{"pod/pod": "gone"})
	c.awaitBlocker("m", maintenance.BlockerVolumesAttached)
	c.awaitFleet("both nodes to wait for their volumes", map[string]string{"n1": "cordoned m:admitted", "n2": "cordoned m:admitted"})
	if err := attachments.Delete(t.Context(), "volume-of-n1", metav1.DeleteOptions{}); err != nil {
		t.Fatalf("detaching a volume: %v", err)
	}
	c.awaitFleet("the node without volumes", map[string]string{"n1": "cordoned m:drained", "n2": "cordoned m:admitted"})
	c.clock.Step(24 * time.Hour)
	c.awaitFleet("the timeout", map[string]string{"n1": "cordoned m:drained", "n2": "cordoned m:drained"})
}

// testSettle does not begin with the next node before the replacement of a pod is ready. The clocks of the
// controller and of the API server are the same.
func testSettle(_ *testing.T, c *cluster) {
	c.createFleetNode("n1")
	c.createFleetNode("n2")
	c.startControllers()
	c.createMaintenance(withParts("m", func(s *coordinationv1alpha1.NodeMaintenanceSpec) {
		s.Rollout.MaxConcurrent = ptr.To(intstr.FromInt32(1))
		s.Rollout.Settle = &coordinationv1alpha1.NodeMaintenanceSettle{Replacements: coordinationv1alpha1.NodeMaintenanceReplacementsAvailable}
	}))
	c.awaitFleet("the first node", map[string]string{"n1": "cordoned m:drained", "n2": "planned"})
	replacement := c.createPod(newPod("replacement", "n3", func(pod *v1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: ptr.To(true)}}
	}))
	c.awaitSettling("m", func(a *v1.MaintenanceAdmission) *metav1.Time { return a.DrainedTime })
	c.setDone("m", "n1")
	c.awaitFleet("the first node to be given back", map[string]string{"n1": "m:done", "n2": "planned"})
	c.awaitSettling("m", func(a *v1.MaintenanceAdmission) *metav1.Time { return a.DoneTime })
	c.setPhase(replacement, v1.PodRunning, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue})
	c.awaitFleet("the second node", map[string]string{"n1": "m:done", "n2": "cordoned m:drained"})
}

// awaitSettling waits until one node waits for replacements of the pods of n1, until ten minutes after a time of
// its admission.
func (c *cluster) awaitSettling(name string, end func(*v1.MaintenanceAdmission) *metav1.Time) {
	c.t.Helper()
	admission := maintenance.AdmissionOf(c.node("n1"), c.maintenance(name).UID)
	if admission == nil || end(admission) == nil {
		c.t.Fatalf("unexpected admission: %+v", admission)
	}
	until := metav1.NewTime(end(admission).Add(10 * time.Minute))
	c.awaitWait(name, coordinationv1alpha1.NodeMaintenanceWait{Reason: coordinationv1alpha1.NodeMaintenanceWaitSettling, NodeCount: 1, UntilTime: &until})
}

// setBootID writes the boot ID of a node, as its kubelet does.
func (c *cluster) setBootID(name, bootID string) {
	c.t.Helper()
	patch := fmt.Appendf(nil, `{"status":{"nodeInfo":{"bootID":%q}}}`, bootID)
	if _, err := c.client.CoreV1().Nodes().Patch(c.t.Context(), name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		c.t.Fatalf("writing the boot ID of node %s: %v", name, err)
	}
}

// awaitHalted waits for the condition Halted.
func (c *cluster) awaitHalted(name string, want metav1.ConditionStatus, text string) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("Halted to be %s", want), func(context.Context) (bool, string) {
		halted := meta.FindStatusCondition(c.maintenance(name).Status.Conditions, string(coordinationv1alpha1.NodeMaintenanceConditionHalted))
		return halted != nil && halted.Status == want && strings.Contains(halted.Message, text), fmt.Sprintf("%+v", halted)
	})
}

// testRebooted has a node that comes back, and one that does not: the rollout halts, and is resumed.
func testRebooted(_ *testing.T, c *cluster) {
	for _, node := range []string{"n1", "n2", "n3"} {
		c.createFleetNode(node)
		c.setBootID(node, "before")
	}
	c.startQuick()
	c.createMaintenance(withParts("m", func(s *coordinationv1alpha1.NodeMaintenanceSpec) {
		s.Rollout = &coordinationv1alpha1.NodeMaintenanceRollout{
			MaxConcurrent: ptr.To(intstr.FromInt32(1)), CompleteNodes: coordinationv1alpha1.NodeCompletionRebooted, ReturnTimeoutSeconds: ptr.To[int32](3600),
		}
	}))
	c.awaitFleet("the first node", map[string]string{"n1": "cordoned m:drained", "n2": "planned", "n3": "planned"})
	c.setBootID("n1", "after")
	c.awaitFleet("the second node", map[string]string{"n1": "m:done", "n2": "cordoned m:drained", "n3": "planned"})
	c.clock.Step(time.Hour)
	c.awaitHalted("m", metav1.ConditionTrue, "n2")
	c.awaitEvent("RolloutHalted", "m")
	c.awaitWait("m", coordinationv1alpha1.NodeMaintenanceWait{Reason: coordinationv1alpha1.NodeMaintenanceWaitHalted, NodeCount: 1})
	c.patchMaintenance("m", `{"spec":{"rollout":{"maxFailedNodes":1}}}`)
	c.awaitFleet("the third node", map[string]string{"n1": "m:done", "n2": "cordoned m:drained", "n3": "cordoned m:drained"})
	c.awaitHalted("m", metav1.ConditionFalse, "n2")
	c.setBootID("n2", "after")
	c.awaitFleet("the node that has failed to come back", map[string]string{"n1": "m:done", "n2": "m:done", "n3": "cordoned m:drained"})
	if status := c.maintenance("m").Status.RolloutStatus; len(status.Failed) > 0 {
		c.eventually("no failed node", func(context.Context) (bool, string) {
			status = c.maintenance("m").Status.RolloutStatus
			return len(status.Failed) == 0, fmt.Sprintf("%+v", status)
		})
	}
}

func (c *cluster) patchMaintenance(name, patch string) {
	c.t.Helper()
	if _, err := c.client.CoordinationV1alpha1().NodeMaintenances().Patch(c.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		c.t.Fatalf("patching maintenance %s: %v", name, err)
	}
}

// testWindows begins with no node before the window opens, and with no further one after it.
func testWindows(_ *testing.T, c *cluster) {
	c.createFleetNode("n1")
	c.createFleetNode("n2")
	c.startQuick()
	opens := c.clock.Now().UTC().Add(12 * time.Hour)
	b := newLimit("nights", "a", intstr.FromInt32(1))
	b.Spec.Windows = []coordinationv1alpha1.NodeMaintenanceWindow{{Schedule: fmt.Sprintf("%d %d * * *", opens.Minute(), opens.Hour()), TimeZone: "UTC", DurationSeconds: 7200}}
	c.createLimit(b)
	opens = opens.Truncate(time.Minute)
	c.createMaintenance(newRollout("m", "a", atOnce(2)))
	closed := coordinationv1alpha1.NodeMaintenanceWait{Reason: coordinationv1alpha1.NodeMaintenanceWaitWindow, Budget: "nights", NodeCount: 2, UntilTime: ptr.To(metav1.NewTime(opens.Local()))}
	c.awaitWait("m", closed)
	c.awaitFleet("nothing to begin", map[string]string{"n1": "planned", "n2": "planned"})
	c.clock.SetTime(opens.Add(time.Minute))
	c.awaitFleet("the first node in the window", map[string]string{"n1": "cordoned m:drained", "n2": "planned"})
	c.clock.SetTime(opens.Add(2 * time.Hour))
	closed.NodeCount, closed.UntilTime = 1, ptr.To(metav1.NewTime(opens.Add(24*time.Hour).Local()))
	c.awaitWait("m", closed)
	c.setDone("m", "n1")
	c.awaitFleet("what was begun to go on", map[string]string{"n1": "m:done", "n2": "planned"})
	c.clock.SetTime(opens.Add(24 * time.Hour))
	c.awaitFleet("the second node in the next window", map[string]string{"n1": "m:done", "n2": "cordoned m:drained"})
}

// testZones maintains nodes of one zone at a time.
func testZones(_ *testing.T, c *cluster) {
	for node, zone := range map[string]string{"n1": "x", "n2": "y", "n3": "x"} {
		c.createFleetNode(node)
		c.labelNode(node, v1.LabelTopologyZone, zone)
	}
	b := newLimit("zones", "a", intstr.FromInt32(3))
	b.Spec.Topology = &coordinationv1alpha1.NodeMaintenanceTopology{Key: v1.LabelTopologyZone, MaxDomains: 1}
	c.createLimit(b)
	c.startQuick()
	c.createMaintenance(newRollout("m", "a", atOnce(3)))
	c.awaitFleet("the nodes of the first zone", map[string]string{"n1": "cordoned m:drained", "n2": "planned", "n3": "cordoned m:drained"})
	c.awaitWait("m", coordinationv1alpha1.NodeMaintenanceWait{Reason: coordinationv1alpha1.NodeMaintenanceWaitTopology, Budget: "zones", NodeCount: 1})
	c.awaitUnavailable("zones", 2, 0) // One more node, but none in this zone.
	c.setDone("m", "n1")
	c.awaitFleet("one node of the first zone to be left", map[string]string{"n1": "m:done", "n2": "planned", "n3": "cordoned m:drained"})
	c.awaitUnavailable("zones", 1, 1)
	c.setDone("m", "n3")
	c.awaitFleet("the second zone", map[string]string{"n1": "m:done", "n2": "cordoned m:drained", "n3": "m:done"})
}

// testFleetKubectl has the commands of kubectl pause, resume and complete.
func testFleetKubectl(t *testing.T, c *cluster, config *rest.Config) {
	c.createFleetNode("n1")
	c.createFleetNode("n2")
	c.startQuick()
	m := newRollout("m", "a", atOnce(1))
	m.Spec.Rollout.Paused = true
	c.createMaintenance(m)
	c.awaitWait("m", coordinationv1alpha1.NodeMaintenanceWait{Reason: coordinationv1alpha1.NodeMaintenanceWaitPaused, NodeCount: 2})
	c.awaitFleet("nothing to begin", map[string]string{"n1": "planned", "n2": "planned"})
	run := func(want string, args ...string) {
		t.Helper()
		if out := planRun(t, config, args...); !strings.Contains(out, want) {
			t.Errorf("%v printed %q, not %q", args, out, want)
		}
	}
	run("nodemaintenance/m is resumed", "resume", "m")
	c.awaitFleet("the first node", map[string]string{"n1": "cordoned m:drained", "n2": "planned"})
	c.awaitWait("m", coordinationv1alpha1.NodeMaintenanceWait{Reason: coordinationv1alpha1.NodeMaintenanceWaitConcurrency, NodeCount: 1}) // kubectl prints what the status says.
	run("nodemaintenance/m is paused: 1 waiting; 1 in progress, which go on", "pause", "m")
	run("node/n1 is being completed", "complete", "m", "n1")
	c.awaitFleet("the first node to be given back", map[string]string{"n1": "m:done", "n2": "planned"})
	c.awaitWait("m", coordinationv1alpha1.NodeMaintenanceWait{Reason: coordinationv1alpha1.NodeMaintenanceWaitPaused, NodeCount: 1})
	run("is resumed", "resume", "m")
	c.awaitFleet("the second node", map[string]string{"n1": "m:done", "n2": "cordoned m:drained"})
	run("node/n2 is being completed", "complete", "m", "node/n2")
	c.awaitFleet("all nodes to be given back", map[string]string{"n1": "m:done", "n2": "m:done"})
	run("nodemaintenance/m is being completed", "complete", "m")
	c.awaitFleet("the end", map[string]string{"n1": "", "n2": ""})
}
