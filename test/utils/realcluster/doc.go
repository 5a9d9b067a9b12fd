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

// Package realcluster runs clusters with real nodes on one machine: the control plane of
// test/utils/controlplane, and nodes with a kubelet, containerd, runc and kube-proxy whose pods run.
// It needs root, and leaves nothing behind when it ends, however it ends.
//
// # Processes
//
//	cluster up-real              starts the supervisor, and waits until the nodes take pods
//	cluster real-supervise       on the host: ends the rest, removes cgroups
//	  cluster real-init          process 1 of the sandbox: namespaces of its own for all but users
//	    cluster real-sandbox     starts the control plane and the nodes, connects them
//	      etcd, kube-apiserver, ...
//	      cluster real-init      process 1 of a node: again namespaces of its own
//	        cluster real-node    prepares the file system, keeps these running:
//	          containerd, kubelet, kube-proxy, dbus-daemon where nodes shut down
//
// When the first process of a PID namespace ends, the kernel ends all others of it, and with the
// last process of the other namespaces go their mounts, interfaces, routes and rules. Each process
// above dies with the one that has started it. So nothing has to be cleaned up but cgroups, which
// belong to no namespace: the supervisor removes them, and if it was killed, the next up or down.
//
// A cluster also ends when its directory is removed: nothing could find it any more.
//
// # Sysctls
//
// The kubelet sets sysctls of the whole machine. It finds files of the node instead, see
// hideSysctls: the machine keeps its values.
//
// # Network
//
// The sandbox is the router between its nodes, each of which has a link of its own to it, see
// network.go. The API server listens in the sandbox, at the same port as the supervisor does on
// the loopback interface of the host: connections that are made there are accepted in the sandbox,
// by the file descriptor of the listening socket, and forwarded.
//
// # Files
//
// All is in the directory of the cluster. Nodes see it at fixed paths, in file systems in memory that
// end with them: containerd and the kubelet do not take every path that a user may choose. For the
// same reason no variable of the user's environment reaches them.
//
// # Upstream's script
//
// With Script, upstream's hack/local-up-cluster.sh starts the control plane in the only node, and its
// kubelet and kube-proxy. Then the sandbox only forwards connections, and ends with the node, which
// ends with the script:
//
//	cluster local-up             instead of up-real
//	  ...
//	    cluster real-sandbox     makes the link of the node
//	      cluster real-init
//	        cluster real-node    containerd, then the script
//	          bash               etcd, kube-apiserver, ..., kubelet, kube-proxy
//
// What the script writes at fixed paths that nodes do not replace goes into overlays in memory, see
// localup_node.go. localup_environment.go says which of a user's variables it gets.
//
// # Files that ask for something
//
// Processes outside of the sandbox ask for a node that boots, or a kubelet that is not started
// again, by empty files below nodes, see actions.go.
package realcluster
