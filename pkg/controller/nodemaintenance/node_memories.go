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
	"sync"

	"k8s.io/kubernetes/pkg/controller/nodemaintenance/requests"
	"k8s.io/kubernetes/pkg/controller/nodemaintenance/returns"
)

// nodeMemories are what this process remembers of nodes. Each is empty after a restart, and only delays or explains what the
// objects and the caches say, but for ownCordons.
type nodeMemories struct {
	contests *requests.Contests
	returns  *returns.Returns
	holdUps  *holdUps
	// reboots has since when nodes are Ready.
	reboots *reboots
	// ownCordons has, by node name, each ownCordon that the status of the node does not say yet: see
	// isOwnCordon. After a restart it is empty. If the status could not be written before, a cordon
	// by hand is then mistaken for one of this controller, and that of a deselected node stays.
	ownCordons sync.Map
	// unrecorded has, by node name, until when no admission is recorded that is not needed: see
	// forgiveUnrecorded.
	unrecorded sync.Map
	// ownConditions has, by node name, the writtenConditions: see isRestoration.
	ownConditions sync.Map
}

func newNodeMemories(owners *returns.OwnerInformers) nodeMemories {
	return nodeMemories{contests: requests.NewContests(), returns: returns.New(owners), holdUps: newHoldUps(), reboots: newReboots()}
}

// forget forgets a node that is gone.
func (m *nodeMemories) forget(node string) {
	m.contests.Forget(node)
	m.returns.Forget(node)
	m.holdUps.forget(node)
	m.reboots.forget(node)
	m.ownCordons.Delete(node)
	m.unrecorded.Delete(node)
	m.ownConditions.Delete(node)
}
