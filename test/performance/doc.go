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

// Command performance is the benchmark of "make bench". It measures what evictions through
// EvictionRequests and drains by NodeMaintenances cost, on clusters with simulated nodes, against
// kubectl drain of the pristine base and against a bare client that calls pods/eviction. All of them
// are measured in the same run, because only ratios within one run can be compared. It prints
// tables, writes all figures as JSON, and fails if a target is missed.
//
// # How it is measured
//
// Each part has a cluster of its own on loopback. etcd does not wait for the disk. The controller
// manager has its default limits: 400 requests a second and a burst of 3,000 for the
// evictionrequest-controller. Requests are counted in the audit log, level Metadata, without watches:
// all of the requester and of the controllers, events included, until both are silent for 2 seconds.
// "Of all clients" adds the disruption controller, simulated nodes, and calls of the API server to
// itself. Latency, 409 and 429 are from there too: without the wait for the client's rate limit. Audit
// logging slows all measured programs.
//
//	way                                           from              to
//	requests, one per pod, 30 at a time           the first create  the last request is Evicted
//	bare client, pods/eviction with the UID,      the first call    the last answer
//	as many at a time as the controller
//	kubectl drain of one node that has all pods,  its start         its end
//	or once of the ten nodes (-l)
//	a NodeMaintenance of ten nodes with 50 pods   the create        a watch delivers Drained as True
//
//	part       figure
//	evictions  end recorded after: per pod, from the answer to its eviction until the last status of its
//	           request
//	lane       writes of the budget: versions of the PDB in a watch, less the updates of the disruption
//	           controller, per evicted pod
//	scale      5,000 node objects without kubelets, node lifecycle, taint eviction and pod garbage
//	           collection, a heartbeat each in the measured minute; six of 30 maintenances select each
//	mass       5,000 node objects with 30 Ready pods each, no audit log, EvictionLane. The second
//	           maintenance, the request of a user, kubectl maintenance status and the heap per request
//	           are measured when a third of the pods is gone: the heap after a garbage collection, less
//	           pods and nodes, divided by all requests, finished ones included
//	           heap after the end: when the objects are removed, plus what the pods needed before, of
//	           the heap before; waits up to 13 minutes
//	           repeated writes: beyond the three of each pod, in another drain whose controller manager
//	           is killed when a third of the pods is gone
//	           p99 of writes: smallest bucket of apiserver_request_duration_seconds that has 99 percent
//	fleet      pods of Deployments of 1,000 replicas; --kube-api-qps=5000, EvictionLane. A client marks
//	           bound pods ready. The scheduler examines two percent of the nodes per pod and does not
//	           spread pods of a Deployment. A drained node is marked done at once; kubectl drain has one
//	           process per node, uncordoned before the next batch
//	           writes: of nodes, maintenances and budgets by the nodemaintenance-controller, refused
//	           ones included, without events
//
// # Reading order
//
//	main.go      flags, and the parts of the benchmark
//	report.go    results, tables, targets, JSON
//	wait.go      what is done at the same time, created, removed, and waited for
//	cluster.go   the cluster, its clients, and what happens in it during a measurement
//	audit.go     which requests count: read from the audit log of the API server
//	workload.go  objects: created, waited for, removed
//	drain.go     the ways to evict pods and to drain nodes that are compared
//	lane.go      the API server without and with EvictionLane
//	rest.go      what is done while no client wants anything
//	scale.go     what maintenances cost on a cluster with thousands of nodes
//	surge.go     what it costs that Deployments replace pods before these leave
//	mass.go      one drain of thousands of nodes with all their pods, and what others notice of it
//	fleet.go     a rollout over many nodes, so many at a time, and nodes that wait
//	metrics.go   metrics of the API server, and the heap of the controller manager
//	podpicker.go scale-downs that ask downscale pod pickers
//	podpicker_server.go has these
package main
