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

// Package nodemaintenance stops static pods of the kubelet for a NodeMaintenance, and keeps them
// away until its end (KEP-4212, "kubelet: Static Pods"). It drains nodes that shut down, see below.
//
// # States
//
// A static pod is identified by its namespace and name:
//
//	running  -> stopping  its mirror pod has an EvictionRequest for which kubelet.k8s.io is active, and
//	                      which somebody wants, as the API server says; the drain targets of the node
//	                      take the mirror pod, no other pod stops
//	stopping -> ended     its containers have ended, and then the API server has answered, and has
//	                      deleted the mirror pod
//	ended    -> held      controllers have processed that, and the checkpoint has the pod
//	stopping,
//	ended    -> refused   since its containers ended, the API server did not answer for 30 seconds,
//	                      or has not deleted the mirror pod, or no controller has processed the
//	                      end, for 2 minutes
//	stopping -> running   the mirror pod was deleted before the containers ended, which controllers
//	                      process as the end: the pod is stopped again for its new mirror pod
//	any      -> running   the drain targets of the node no longer take the pod
//
// A stop that has begun goes on whatever becomes of the request: the report of the interceptor says that it has
// begun, and the evictionrequest-controller does not cancel the request meanwhile.
//
// While a pod is stopping, ended or held, the kubelet does not see it: package config omits it from
// the updates of its source. So the kubelet stops the pod with its grace period, deletes the mirror
// pod, and starts the pod again, as if the manifest was removed and added. What changes in the
// manifest meanwhile has its effect afterwards. A pod with a new name is a new pod: it starts,
// its mirror pod gets an EvictionRequest, and it is stopped.
//
// A pod that may run again, or is refused, returns when the kubelet has forgotten the one that it
// ends. If it came back before, with the same UID, the kubelet would run it later without admitting
// it, and would not count it when it admits other pods.
//
// # The checkpoint
//
// Only held and refused pods are in the checkpoint. A kubelet that has crashed during a stop runs
// the pod again and stops it with its full grace period: kubelets end pods that they do not see at
// their start without it. The file cannot become the only reason for a stopped control plane: if it
// is unreadable, pods run, and if it is not writable, they are not stopped.
//
// The drain targets are in the status of the node, which the kubelet watches anyway. While the node
// is unknown, because the API server does not answer after a restart or the node does not exist,
// held pods stay away.
//
// # Outages
//
// The control plane may run as static pods of the node. So the end of a pod counts when the API
// server has confirmed it, and when a controller has marked the EvictionRequest as Evicted: without
// controllers, nothing would end the maintenance. Otherwise the kubelet starts the pod again, and
// refuses to stop it until the end of the maintenance. A kubelet may not read the EvictionRequest of a
// mirror pod that is gone. If it has to start its watch again just then, it looks for another trace
// of controllers: they count pods in the status of the node. So the mirror pod is kept until the API
// server has answered after the end of the containers, and any later change of that status counts.
//
// The sync loop of the kubelet deletes mirror pods, and starts no pod while it waits for the API
// server. So it waits a few seconds only.
//
// One pod stops at a time, after the API server has answered, so an outage has at most one suspect,
// and no other pod is refused.
//
// # Shutdowns
//
// A Shutdown drains the node before the machine shuts down (KEP-4212, "kubelet: Graceful Node
// Shutdown"). Package nodeshutdown calls Drain when logind announces a shutdown, and terminates what
// is left when Drain returns:
//
//	asking     -> asked       the API server has accepted the NodeMaintenance of the shutdown
//	asked      -> draining    controllers drain the node
//	asking     -> draining    another maintenance drains the node, and the API server answers
//	draining   -> asking      that one has ended
//	any        -> called off  another client has ended the maintenance of the shutdown
//
// If the node is not draining for too long, pods are terminated as without a maintenance, in order of their
// priorities, until it is. Drain returns when no pod is left, or only pods that stay in maintenances, at the limit
// of the delay, or when the shutdown is canceled.
//
// In each graceful shutdown, also without a drain, the node has the condition GracefulNodeShutdownInProgress,
// whose reason says who ends the pods. While a machine shuts down, the lock that delays this is also in the file
// descriptor store of systemd, so that a kubelet that restarts has it again.
//
// The maintenance must end afterwards. Its record says so: a file which is written before the
// maintenance is created, and names the boot. A kubelet in another boot ends the maintenance. In the
// same boot, logind or the file say whether the shutdown is still in progress. Run makes all attempts
// to end it, and Drain stops the current one before it creates a maintenance of the same name.
// Without a shutdown, the API server is called only by a kubelet that starts without a record while
// a maintenance drains the node: that may be the maintenance of a lost record.
//
// # Reading order
//
//	manager.go                       the type, and what it does with each static pod
//	holds.go                         the states of static pods
//	interceptor.go                   the interceptors of mirror pods
//	checkpoint.go, sync_unix.go,
//	sync_windows.go                  the checkpoint
//	shutdown.go, shutdown_drain.go   the drain of a node that shuts down
//	shutdown_keeper.go               how its maintenance is kept while the shutdown takes
//	shutdown_maintenance.go          the maintenance
//	shutdown_end.go                  how it ends, also after the next boot
//	shutdown_record.go               what is stored about it
//	shutdown_condition.go            the condition GracefulNodeShutdownInProgress
//	events.go, metrics/              events and metrics
//
// pkg/kubelet/config/withhold.go keeps pods from the kubelet, pkg/kubelet/kubelet_nodemaintenance.go and
// kubelet_nodeshutdown.go start this package, and pkg/kubelet/nodeshutdown/drain_linux.go, inhibit_locks_linux.go
// and systemd_store_linux.go are the side of systemd.
package nodemaintenance
