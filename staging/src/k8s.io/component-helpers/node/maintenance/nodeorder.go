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

package maintenance

import (
	"crypto/sha256"
	"encoding/binary"
)

// allNodesScored is the number of nodes up to which kube-scheduler scores all nodes of a cluster for
// each pod. In a larger one it scores some, which follow each other in its list.
const allNodesScored = 100

// NodeOrder returns the place of a node among those of one maintenance that wait for the same, the least
// first; nodes with equal places are in the order of their names. clusterNodes is how many nodes the
// cluster has.
//
// In a cluster of at most 100 nodes, all places are equal. In a larger one, names are spread: nodes with
// similar names follow each other in the list of kube-scheduler, which scores a part of it for each pod.
// If they were given back one after the other, most parts would have none of them, and the pods of the
// next nodes would move to nodes that wait, and move again.
func NodeOrder(name string, clusterNodes int) uint64 {
	if clusterNodes <= allNodesScored {
		return 0
	}
	// A simpler hash has similar values for similar names.
	sum := sha256.Sum256([]byte(name))
	return binary.BigEndian.Uint64(sum[:])
}
