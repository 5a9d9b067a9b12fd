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

package decision

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/progress"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/write"
)

// PodWrites returns the writes about pods that follow from the stored targets of a node that is drained.
func (d *Decision) PodWrites() []requests.Write {
	// A pod that is acted on needs no request any more: there is one write for it at a time.
	writes := append(d.actWrites(), writesFor(d.Node.Name, d.requests(progress.StoredTargets(d.Node)), false)...)
	return append(writes, writesFor(d.Node.Name, d.Unneeded, true)...)
}

// actWrites returns the writes of the acts that are due.
func (f *Facts) actWrites() []requests.Write {
	var writes []requests.Write
	for i := range f.Pods {
		pod := &f.Pods[i]
		if act := pod.NeededAct(f.Node, f.Specs); act != "" {
			writes = append(writes, requests.Write{Namespace: pod.Namespace, Pod: pod.Name, Node: f.Node.Name, UID: pod.UID, Act: act})
		}
	}
	return writes
}

// WithdrawalWrites returns the withdrawals on a node that no maintenance drains.
func (f *Facts) WithdrawalWrites(node string) []requests.Write {
	return writesFor(node, f.Withdrawals(), true)
}

// writesFor returns the requests or withdrawals for these pods of a node.
func writesFor(node string, pods []*v1.Pod, withdraw bool) []requests.Write {
	var writes []requests.Write
	for _, pod := range pods {
		writes = append(writes, requests.Write{Namespace: pod.Namespace, Pod: pod.Name, Node: node, UID: pod.UID, Withdraw: withdraw})
	}
	return writes
}

// wantedWrites returns the writes for the node that are wanted.
func (d *Decision) wantedWrites() sets.Set[write.Key] {
	var wanted sets.Set[write.Key]
	switch uid := d.Node.UID; {
	case d.mustUncordon():
		wanted = sets.New(write.Uncordon.Of(uid))
	case d.View.Claimed() && !d.Node.Spec.Unschedulable:
		wanted = sets.New(write.Status.Of(uid), write.Cordon.Of(uid))
	default:
		wanted = sets.New(write.Status.Of(uid))
	}
	if d.NeedsTaint() {
		wanted.Insert(write.Taint.Of(d.Node.UID))
	}
	if d.View.Waits {
		wanted.Insert(write.Admission.Of(d.Node.UID))
	}
	if d.View.Drains() {
		return wanted.Union(write.KeysOf(write.Request, d.requests(d.View.Targets))).
			Union(write.KeysOf(write.Escalation, d.acts())).Union(write.KeysOf(write.Withdrawal, d.Unneeded))
	}
	return wanted.Union(write.KeysOf(write.Withdrawal, d.Withdrawals()))
}
